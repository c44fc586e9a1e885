"""Controllers that more than one program runs."""
