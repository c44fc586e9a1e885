"""ShootStates: what a Shoot takes along to another Seed, as it is saved in the garden.

It holds keys, so it is never logged. Whoever saves it now and then takes what lives; whoever moves a Shoot adds to what
was saved before, since some of it may be gone by then.
"""
