"""The cells, one a file."""
