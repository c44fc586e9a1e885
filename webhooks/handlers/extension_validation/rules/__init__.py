"""How objects are decoded and compared, for all kinds: pure."""
