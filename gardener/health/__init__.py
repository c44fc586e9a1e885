"""What an object is found to be by the rules of its kind."""
