"""What cells are made of, for authors of cells."""
