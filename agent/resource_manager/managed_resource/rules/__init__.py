"""What may be written, what is reported and who owns an object: pure."""
