"""What is in the state of a Shoot, and what is taken out of it: pure."""
