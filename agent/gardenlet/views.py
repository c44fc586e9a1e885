"""The kinds that several controllers see, so that they share one watch."""

from gardener.api.garden import SEEDS
from kube.runtime.cache import View, without_managed_fields

SEEDS_VIEW = View(SEEDS, without_managed_fields)
