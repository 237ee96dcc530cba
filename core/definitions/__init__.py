"""What is declared and must outlive the process: how it is written, kept and brought back."""
