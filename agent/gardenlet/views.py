"""The kinds that several controllers see, so that they share one watch."""

from functools import cache

from gardener.api.garden import BACKUP_ENTRIES, SEEDS
from gardener.keys import SEED_LABEL_PREFIX
from kube.objects import Object
from kube.runtime.cache import View, without_managed_fields

SEEDS_VIEW = View(SEEDS, without_managed_fields)


@cache
def backup_entries_view(seed: str) -> View[Object]:
    """Those that are on the Seed, or have not left it yet."""
    return View(BACKUP_ENTRIES, without_managed_fields, label_selector=f"{SEED_LABEL_PREFIX}{seed}=true")
