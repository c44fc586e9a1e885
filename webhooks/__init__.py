"""The admission server: what API servers ask before they store an object."""
