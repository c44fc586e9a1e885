"""What the condition says: pure."""
