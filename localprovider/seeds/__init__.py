"""Shoots that are seeds: what would run on their nodes runs here.

When somebody has deployed a gardenlet into a Shoot with workers, the Shoot gets a local provider of its own, which runs
that gardenlet and the Shoots that it makes, and a resource manager. Both are processes of the provider of the seed.

configuration   files of the two programs
reconcile       one pass over the pools of workers of a Shoot
"""
