"""What all programs agree on about the garden API: its kinds, their schemas, and rules that several need."""
