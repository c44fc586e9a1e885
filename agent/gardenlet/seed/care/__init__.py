"""Health of the seed's components: a condition of the Seed."""
