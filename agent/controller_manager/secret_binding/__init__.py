"""Keeps SecretBindings that Shoots refer to; see `credentials` for what becomes of the Secrets."""
