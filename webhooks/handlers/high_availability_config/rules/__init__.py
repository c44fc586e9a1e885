"""The right value of each field: pure."""
