"""Shoots that use credentials with a Quota live as long as that allows."""
