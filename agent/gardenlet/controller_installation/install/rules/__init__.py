"""What is installed for an extension: pure."""
