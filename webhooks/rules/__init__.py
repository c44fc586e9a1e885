"""What all webhooks are made of: pure."""
