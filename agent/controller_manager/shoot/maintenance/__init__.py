"""Maintains Shoots in their time windows: versions, and a reconciliation once a day."""
