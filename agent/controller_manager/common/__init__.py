"""What controllers of the controller manager share; it knows none of them."""
