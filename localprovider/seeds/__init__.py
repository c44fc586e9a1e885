"""Shoots that are seeds: programs for their nodes run locally.

When a gardenlet is deployed into a Shoot with workers, the Shoot gets a local provider of its own, which runs that
gardenlet and the Shoots that it creates, and a resource manager. Both are processes of the provider of the seed.

configuration   files of the two programs
reconcile       one pass over the pools of workers of a Shoot
"""
