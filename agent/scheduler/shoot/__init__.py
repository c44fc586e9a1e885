"""Shoots without a Seed get one."""
