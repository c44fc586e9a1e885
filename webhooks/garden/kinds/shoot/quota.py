"""Quotas of bindings: resources that all their Shoots may use together.

Reads `QUOTAS`, `SECRET_BINDINGS`, `CREDENTIALS_BINDINGS`, `SHOOTS`, and the kinds that `profile` reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from gardener.api.garden import CREDENTIALS_BINDINGS, QUOTAS, SECRET_BINDINGS, SHOOTS
from gardener.garden import users
from gardener.garden.shoots import workers
from kube.objects import Key, Object, key, mapping, mappings, metadata, spec, text
from kube.paths import at
from kube.quantities import parse_quantity, written
from webhooks.garden.common.credentials import scope_of
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.profile import profile_of
from webhooks.garden.kinds.shoot.references import own_binding
from webhooks.garden.shoot_spec.fields import WORKERS, stored_pools, workers_of

_METRICS = ("cpu", "gpu", "memory", "storage.standard", "storage.premium", "loadbalancer")
_CLASSES = ("standard", "premium")


def quota_of_new(write: Write) -> Iterator[Finding]:
    """The quotas of its credentials have room."""
    if write.is_create:
        yield from _exceeded(write)


def quota_of_change(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: only of Shoots that may need more than before."""
    if not write.is_deleting and (_gets_ingress(write) or _has_other_pools(write)):
        yield from _exceeded(write)


def _gets_ingress(write: Write) -> bool:
    return _has_ingress(write.spec) and not _has_ingress(write.old_spec)


def _has_ingress(shoot_spec: Object) -> bool:
    return at(shoot_spec, "addons", "nginxIngress", "enabled") is True


def _has_other_pools(write: Write) -> bool:
    before = stored_pools(write)
    return any(_size(each) != _size(before.get(each.get("name") or "", {})) for each in workers_of(write))


def _size(worker: Object) -> tuple[object, ...]:
    machine = worker.get("machine") or {}
    return machine.get("type"), worker.get("maximum"), worker.get("volume")


def quotas_of(write: Write) -> Iterator[Object]:
    binding = own_binding(write)
    for reference in mappings(mapping(binding).get("quotas")):
        namespace = text(reference.get("namespace")) or write.namespace
        found = write.garden.need(QUOTAS, text(reference.get("name")), namespace)
        if found is not None:
            yield found


# --- usage


def _exceeded(write: Write) -> Iterator[Finding]:
    for quota in quotas_of(write):
        limits = mapping(spec(quota).get("metrics"))
        used = _usage(write, write.spec)
        for other in _others(write, quota):
            theirs = _usage(replace(write, namespace=text(metadata(other).get("namespace"))), spec(other))
            used = {name: amount + theirs[name] for name, amount in used.items()}
        over = [name for name in _METRICS if name in limits and _above(used[name], limits[name])]
        if over:
            yield Denial(_refusal(quota, over, used), WORKERS)


def _refusal(quota: Object, over: Sequence[str], used: Mapping[str, Decimal]) -> str:
    limits = mapping(at(quota, "spec", "metrics"))
    listed = "".join(f"{name} " for name in over)
    amounts = ", ".join(f"{name} {written(used[name], like=[limits[name]])} of {limits[name]}" for name in over)
    return (
        f"quota limits exceeded. Unable to allocate further {listed}- with this Shoot, the Shoots of Quota "
        f"{key(quota)} would need {amounts}; request less, delete others, or have its spec.metrics raised"
    )


def _above(used: Decimal, limit: object) -> bool:
    bound = _amount(limit)
    return bound is not None and used > bound


_BINDINGS = ((SECRET_BINDINGS, users.secret_bindings), (CREDENTIALS_BINDINGS, users.credentials_bindings))


def _others(write: Write, quota: Object) -> Iterator[Object]:
    """Other Shoots that use a binding with this quota."""
    own = Key(write.namespace, write.name)
    for resource, index in _BINDINGS:
        for binding in write.garden.by(resource, users.quotas, key(quota)):
            if scope_of(quota) == "project" and metadata(binding).get("namespace") != write.namespace:
                continue
            yield from (shoot for shoot in write.garden.by(SHOOTS, index, key(binding)) if key(shoot) != own)


def _usage(write: Write, shoot_spec: Object) -> dict[str, Decimal]:
    """Maximum usage of a Shoot in the namespace of the request; types missing in its profile count as zero."""
    profile = profile_of(write, shoot_spec) or {}
    machines = {text(each.get("name")): each for each in mappings(profile.get("machineTypes"))}
    volumes = {text(each.get("name")): each for each in mappings(profile.get("volumeTypes"))}
    used = dict.fromkeys(_METRICS, Decimal(0))
    for worker in workers(shoot_spec):
        count = Decimal(worker.get("maximum") or 0)
        machine = mapping(machines.get(text(at(worker, "machine", "type"))))
        for name in ("cpu", "gpu", "memory"):
            used[name] += count * (_amount(machine.get(name)) or 0)
        storage, volume = mapping(machine.get("storage")), mapping(worker.get("volume"))
        found = mapping(volumes.get(text(volume.get("type"))))
        kind = text(storage.get("class")) or text(found.get("class"))
        if kind in _CLASSES:
            used[f"storage.{kind}"] += count * (_amount(volume.get("size")) or _amount(storage.get("size")) or 0)
    used["loadbalancer"] += 2 if _has_ingress(shoot_spec) else 1
    return used


def _amount(value: object) -> Decimal | None:
    try:
        return parse_quantity(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
