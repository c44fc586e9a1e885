"""What follows from objects and configuration for a gardenlet that is installed: pure."""
