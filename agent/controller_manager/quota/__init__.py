"""Keeps Quotas that bindings refer to, and labels them."""
