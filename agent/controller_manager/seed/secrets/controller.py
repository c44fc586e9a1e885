"""The controller `seed-secrets`.

Seeds        that come
Secrets      of the garden: all Seeds; copies: their Seed
Namespaces   of Seeds, if they go or have been changed
"""

from functools import partial

from agent.controller_manager.common.api import GARDEN_SECRETS_VIEW, NAMESPACES_VIEW, SEEDS_VIEW
from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.context import Context
from agent.controller_manager.seed.secrets.reconcile import Reconciler
from gardener.api.garden import SEEDS
from gardener.garden.seeds import seed_of
from kube.objects import Key, Object, is_deleting, labels, metadata
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped

_WORKERS = 5


def declare(context: Context) -> ControlLoop:
    caches = context.garden.caches
    loop = ControlLoop("seed-secrets", kind=SEEDS, workers=_WORKERS)
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=_came))
    secrets = loop.watch(caches, GARDEN_SECRETS_VIEW, enqueue_mapped(partial(_of_secret, seeds)))
    namespaces = loop.watch(caches, NAMESPACES_VIEW, enqueue_mapped(_of_namespace, when=_namespace_matters))
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, seeds=seeds, secrets=secrets, namespaces=namespaces)
    )


def _came(change: Change[Object]) -> bool:
    return change.new is not None and (change.old is None or change.initial)


def _of_secret(seeds: Store[Object], change: Change[GardenSecret | None]) -> list[Key]:
    if name := seed_of(change.key.namespace):
        return [Key("", name)]
    return list(seeds.all_keys())


def _namespace_matters(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or _kept(old) != _kept(new)


def _kept(namespace: Object) -> tuple[object, ...]:
    return labels(namespace), metadata(namespace).get("ownerReferences"), is_deleting(namespace)


def _of_namespace(change: Change[Object]) -> list[Key]:
    name = seed_of(change.key.name)
    return [Key("", name)] if name else []
