"""The scheduler: finds Seeds for Shoots."""
