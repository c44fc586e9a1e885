"""Parts of all webhooks: pure."""
