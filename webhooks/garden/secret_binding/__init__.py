"""SecretBindings: a Secret with credentials, and quotas."""
