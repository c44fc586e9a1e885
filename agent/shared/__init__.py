"""Controllers that more than one program runs, and what their pages have in common."""
