"""Secrets and ConfigMaps that Shoots refer to are not deleted while they do."""
