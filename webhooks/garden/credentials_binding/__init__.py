"""CredentialsBindings: credentials of any kind, and quotas."""
