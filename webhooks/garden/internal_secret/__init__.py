"""InternalSecrets: Secrets that members of a Project cannot read."""
