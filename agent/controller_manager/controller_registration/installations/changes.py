"""Which changes of objects concern the installations of Seeds; of all others no Seed is looked at."""

from typing import Any

from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.controller_registration.installations.desired import LABELS, POD_SECURITY, Deployment
from agent.controller_manager.controller_registration.installations.needs import is_required
from kube.objects import Object, annotations, is_deleting, labels, spec
from kube.runtime.cache import Change


def came_or_went(change: Change[Any]) -> bool:
    return (change.old is None) != (change.new is None)


def seed_matters(change: Change[Object]) -> bool:
    """Not that one is gone: before that, nothing was left that would belong to it."""
    old, new = change.old, change.new
    if new is None:
        return False
    return old is None or change.initial or is_deleting(new) or _of_seed(old) != _of_seed(new)


def _of_seed(seed: Object) -> tuple[Any, ...]:
    return spec(seed), labels(seed), annotations(seed)


def registration_matters(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or _of_registration(old) != _of_registration(new)


def _of_registration(registration: Object) -> tuple[Any, ...]:
    return spec(registration), is_deleting(registration), annotations(registration).get(POD_SECURITY)


def deployment_matters(change: Change[Deployment]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or old.hash != new.hash


def installation_matters(change: Change[Object]) -> bool:
    """Also if what is ours in it has been changed by hand."""
    old, new = change.old, change.new
    return old is None or new is None or _of_installation(old) != _of_installation(new)


def _of_installation(installation: Object) -> tuple[Any, ...]:
    own = [labels(installation).get(name) for name in LABELS], annotations(installation).get(POD_SECURITY)
    return spec(installation), is_deleting(installation), is_required(installation), own


def secret_matters(change: Change[GardenSecret | None]) -> bool:
    """Whether there is one more or less, or another domain."""
    old, new = change.old, change.new
    return (old is None) != (new is None) or (
        old is not None and new is not None and (old.role, old.domain) != (new.role, new.domain)
    )


def bucket_matters(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or spec(old) != spec(new)
