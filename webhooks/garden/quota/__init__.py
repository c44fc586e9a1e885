"""Quotas: limits of what Shoots use."""
