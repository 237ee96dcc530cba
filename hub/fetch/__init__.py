"""Getting what others publish: vetted addresses only, and no more bytes than were agreed on."""
