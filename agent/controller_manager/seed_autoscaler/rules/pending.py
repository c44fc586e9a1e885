"""Shoots that wait for a Seed, and the set that would help each.

A Shoot counts for a set if no Seed takes it now, and the scheduler would choose a new Seed of this set among the new
Seeds of all sets: the nearest, and of equal ones the first by name. All rules are those of the scheduler.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import floor

from agent.controller_manager.seed_autoscaler.rules.loads import SHOOTS
from agent.controller_manager.seed_autoscaler.rules.observation import unit_of
from gardener.conditions import BACKUP_BUCKETS_READY, GARDENLET_READY
from gardener.garden.managed_seeds import properties_of_host, seed_template_path
from gardener.garden.scheduling import SeedCandidates, SeedInfo, decide, reports_failure, waits
from gardener.garden.shoots import zones_of_workers
from kube.clock import time_or_none
from kube.objects import Object, key, mapping, metadata, spec
from kube.paths import at, mapping_at, with_value


def new_seed(seed_set: Object) -> SeedInfo:
    """Seed that the set would create, named like the set."""
    managed_seed = mapping_at(seed_set, "spec", "template", "spec")
    template = mapping_at(managed_seed, *seed_template_path(managed_seed))
    room = unit_of(seed_set).get(SHOOTS)
    conditions = [{"type": each, "status": "True"} for each in (GARDENLET_READY, BACKUP_BUCKETS_READY)]
    seed = {
        "metadata": {
            "name": key(seed_set).name,
            "labels": mapping_at(template, "metadata", "labels"),
        },
        "spec": _completed(mapping(template.get("spec")), mapping_at(seed_set, "spec", "shootTemplate")),
        "status": {
            "lastOperation": {"state": "Succeeded"},
            "conditions": conditions,
            "allocatable": {} if room is None else {SHOOTS: floor(room)},
        },
    }
    return SeedInfo.of(seed)


def _completed(seed_spec: Object, shoot: Object) -> Object:
    """Complete the spec like the admission of ManagedSeeds."""
    reported: list[tuple[tuple[str, ...], str | list[str]]] = [
        (each.path, each.value) for each in properties_of_host(shoot)
    ]
    for path, value in [*reported, (("provider", "zones"), zones_of_workers(spec(shoot)))]:
        if value and not at(seed_spec, *path):
            seed_spec = with_value(seed_spec, path, value)
    return seed_spec


def counts_from(shoot: Object, grace: timedelta) -> datetime | None:
    """Time from which a waiting Shoot counts; None if it has a Seed, or none was searched for yet."""
    if not waits(shoot) or not reports_failure(shoot):
        return None
    created = time_or_none(metadata(shoot).get("creationTimestamp"))
    return None if created is None else created + grace


def helped_by(shoot: Object, profile: Object | None, garden: SeedCandidates, new_seeds: Sequence[SeedInfo]) -> str:
    """Name of the set whose new Seed the Shoot would run on; empty if none would help, or it need not wait.

    Args:
        shoot: waiting Shoot.
        profile: see `scheduling.decide`.
        garden: garden with the present Seeds.
        new_seeds: one of each set, sorted by name.
    """
    found = decide(shoot, profile, replace(garden, seeds=new_seeds, usage=lambda _: 0)).seed
    return found if found and not decide(shoot, profile, garden).seed else ""
