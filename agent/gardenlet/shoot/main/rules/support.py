"""What can't be done for a Shoot yet: better nothing than a part of it."""

from gardener.garden.shoots import workers
from gardener.operations import MIGRATE, RESTORE
from kube.objects import Object, spec


def unsupported(shoot: Object, kind: str) -> str:
    """Why an operation can't be carried out; empty: it can. Args: kind: of operation."""
    if kind in {MIGRATE, RESTORE}:
        return "Shoots can't move between seeds yet; set spec.seedName to the Seed of status.seedName"
    if workers(spec(shoot)):
        return "Shoots with workers are not supported yet; create one without spec.provider.workers"
    return ""
