"""Seeds: the Secrets that their gardenlets may read, and what is said about them by others than their gardenlets."""
