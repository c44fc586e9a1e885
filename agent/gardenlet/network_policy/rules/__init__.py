"""What a policy allows: pure."""
