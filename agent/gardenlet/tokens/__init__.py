"""Tokens that the garden issues, kept in Secrets of the seed for their users."""
