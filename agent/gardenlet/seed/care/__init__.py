"""How the components of the seed are: a condition of the Seed."""
