"""Tasks of the operations on a Shoot and their order: a table for each operation."""
