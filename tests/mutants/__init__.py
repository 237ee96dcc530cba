"""Small mutations of the product, and whether the tests notice them: `make mutants`."""
