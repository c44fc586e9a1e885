"""What maintenance changes in a Shoot: versions and what goes along with them, its operation, its tasks.

drawn = plan(shoot, profile, now=now, restarts=Restarts())
drawn.maintained   the Shoot as it is to be
drawn.is_change    whether its spec or its operation is another than that of any day
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gardener import keys
from gardener.garden.maintenance import images, kubernetes, repairs
from gardener.garden.maintenance.repairs import Crossing, pool_version
from gardener.garden.maintenance.updates import Update
from gardener.garden.shoots import FAILED, last_operation, workers
from gardener.garden.versions import parse_version
from kube.objects import Object, annotations, is_truthy, mapping, mappings, metadata, text
from kube.paths import at, mapping_at

_TASKS = ("deployInfrastructure", "deployDNSRecordInternal", "deployDNSRecordExternal", "deployDNSRecordIngress")
_RESTART_CONTROL_PLANE, _RESTART_ADDONS = "restartControlPlanePods", "restartCoreAddons"
_REPLACED = (None, "", keys.OPERATION_MAINTAIN, keys.OPERATION_RETRY, keys.OPERATION_RECONCILE)
"""Operations that another one may replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """What is restarted besides."""

    control_plane: bool = True
    core_addons: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    maintained: Object
    control_plane: Update | None
    pools: Sequence[tuple[str, Update]]
    """Their versions of Kubernetes, by the name of the pool."""
    images: Sequence[tuple[str, Update]]
    texts: Sequence[str]
    """What else changes, and why."""
    problem: str
    """Why images were not looked at; empty: they were."""

    @property
    def updates(self) -> list[Update]:
        first = [] if self.control_plane is None else [self.control_plane]
        return [*first, *(update for _, update in (*self.pools, *self.images))]

    @property
    def is_change(self) -> bool:
        return bool(self.updates or self.texts)


def plan(shoot: Object, profile: Object, *, now: datetime, restarts: Restarts) -> Plan:
    """Args: profile: the spec of the Shoot's cloud profile, with what the project changes in it."""
    spec = copy.deepcopy(mapping(shoot.get("spec")))
    image_updates, problem = _update_images(spec, profile, now)
    old = text(at(spec, "kubernetes", "version"))
    control_plane = _update_control_plane(spec, profile, now)
    new = text(at(spec, "kubernetes", "version"))
    crossing = _crossing(old, new)
    texts = list(repairs.before_pools(spec, crossing)) if crossing else []
    pools = list(_update_pools(spec, profile, now))
    texts += repairs.after_versions(spec, crossing) if crossing else ()
    meta, operation = _metadata(shoot, restarts)
    if operation:
        texts.append(f'Added "{operation}" operation annotation')
    return Plan(
        maintained={**shoot, "metadata": meta, "spec": spec},
        control_plane=control_plane,
        pools=pools,
        images=image_updates,
        texts=texts,
        problem=problem,
    )


# --- versions


def _wants(spec: Object, field: str) -> bool:
    return at(spec, "maintenance", "autoUpdate", field) is True


def _versions(profile: Object) -> list[Object]:
    return mappings(at(profile, "kubernetes", "versions"))


def _update_images(spec: Object, profile: Object, now: datetime) -> tuple[list[tuple[str, Update]], str]:
    """Changes the spec; if the profile lacks the image of a pool, all pools keep theirs, and the text says why."""
    found = []
    try:
        for worker in workers(spec):
            target, update = images.update(
                worker,
                mappings(profile.get("machineImages")),
                kubelet=parse_version(pool_version(spec, worker)),
                auto=_wants(spec, "machineImageVersion"),
                now=now,
            )
            if update is not None:
                found.append((worker, target, update))
    except images.NoImage as error:
        return [], f"{error}"
    for worker, target, _ in found:
        mapping_at(worker, "machine", "image")["version"] = target
    return [(text(worker.get("name")), update) for worker, _, update in found], ""


def _update_control_plane(spec: Object, profile: Object, now: datetime) -> Update | None:
    holder = mapping_at(spec, "kubernetes")
    auto = _wants(spec, "kubernetesVersion")
    target, update = kubernetes.update(text(holder.get("version")), _versions(profile), auto=auto, now=now)
    if update is not None:
        holder["version"] = target
    return update


def _update_pools(spec: Object, profile: Object, now: datetime) -> Iterator[tuple[str, Update]]:
    most, auto = text(at(spec, "kubernetes", "version")), _wants(spec, "kubernetesVersion")
    for worker in workers(spec):
        holder = mapping_at(worker, "kubernetes")
        own = text(holder.get("version"))
        if not own:
            continue
        target, update = kubernetes.update(own, _versions(profile), auto=auto, now=now, most=most)
        if update is not None:
            holder["version"] = target
            yield text(worker.get("name")), update


def _crossing(old: str, new: str) -> Crossing | None:
    before, after = parse_version(old), parse_version(new)
    return Crossing(before, after) if before is not None and after is not None else None


# --- operation and tasks


def _metadata(shoot: Object, restarts: Restarts) -> tuple[Object, str]:
    """With the annotations of the maintained Shoot; and which operation it gets that not every maintenance asks for."""
    wanted = dict(annotations(shoot))
    pending = wanted.get(keys.OPERATION)
    if pending == keys.OPERATION_MAINTAIN:
        del wanted[keys.OPERATION]
    special = ""
    before = last_operation(shoot)
    if before.get("state") == FAILED:
        if is_truthy(wanted.get(keys.NEEDS_RETRY)):
            del wanted[keys.NEEDS_RETRY]
            wanted[keys.OPERATION] = keys.OPERATION_RETRY
    elif before and pending in _REPLACED:
        operation = wanted.pop(keys.MAINTENANCE_OPERATION, "") or keys.OPERATION_RECONCILE
        wanted[keys.OPERATION] = operation
        special = "" if operation == keys.OPERATION_RECONCILE else operation
    wanted[keys.TASKS] = ",".join(_tasks(wanted.get(keys.TASKS, ""), restarts))
    return {**metadata(shoot), "annotations": wanted}, special


def _tasks(present: str, restarts: Restarts) -> list[str]:
    wanted = [task.strip() for task in present.split(",") if task.strip()]
    wanted += _TASKS
    wanted += [_RESTART_CONTROL_PLANE] if restarts.control_plane else []
    wanted += [_RESTART_ADDONS] if restarts.core_addons else []
    return list(dict.fromkeys(wanted))
