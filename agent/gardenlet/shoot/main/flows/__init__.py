"""What is done for a Shoot, and in which order: a table for each operation."""
