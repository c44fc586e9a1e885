"""The Prometheus servers of a seed, which the operator makes.

cache      what nodes say of their Pods, for a day: others take from it what they need
seed       the components of the seed
aggregate  what is computed from both, and from the servers of Shoots, for a month: people reach it

servers    what they have in common
scraped    what each of them scrapes, and computes
"""

from agent.gardenlet.components.prometheus.scraped import aggregate, cache, seed
from agent.gardenlet.components.prometheus.servers import ROLE, Values, name_of, objects

__all__ = ["ROLE", "Values", "aggregate", "cache", "name_of", "objects", "seed"]
