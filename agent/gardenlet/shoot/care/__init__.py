"""Care: conditions and constraints of Shoots, and garbage collection in their clusters."""
