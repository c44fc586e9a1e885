"""Bastions: machines by which the nodes of a Shoot are reached for a while."""
