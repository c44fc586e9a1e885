"""What Secrets are called, what they hold, and when they are renewed: pure."""
