"""The garden API for all programs: its kinds, their schemas, and rules that several of them need."""
