"""Controllers that more than one program runs, and the common parts of their pages."""
