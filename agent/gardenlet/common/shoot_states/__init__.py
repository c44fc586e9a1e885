"""ShootStates: the data that moves with a Shoot to another Seed, as saved in the garden.

It contains keys, so it is never logged. A regular save replaces it with the live data; a migration adds to the saved
data, since some of the live data may be gone by then.
"""
