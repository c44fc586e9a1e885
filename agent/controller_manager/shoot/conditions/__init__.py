"""A Shoot that a Seed runs on shows the conditions of the Seed."""
