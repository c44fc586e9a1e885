"""Keeps CredentialsBindings that Shoots refer to; see `credentials` for what becomes of the credentials."""
