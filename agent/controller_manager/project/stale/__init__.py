"""Projects that nobody uses are marked, and deleted after a long time."""
