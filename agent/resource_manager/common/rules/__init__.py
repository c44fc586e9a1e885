"""Rules that several controllers share: pure."""
