"""Seeds: the Secrets that their gardenlets may read, and conditions that other programs than their gardenlets write."""
