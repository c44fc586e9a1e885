"""Rules that several kinds of the garden API share, by topic."""
