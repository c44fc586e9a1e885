"""Changes of a Shoot by maintenance: versions and their consequences, its operation, its tasks.

drawn = plan(shoot, profile, now=now, restarts=Restarts())
drawn.maintained   the desired Shoot
drawn.is_change    whether its spec or operation differs from an ordinary maintenance
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gardener import keys
from gardener.garden.maintenance import repairs
from gardener.garden.maintenance.choice import Versions, choose
from gardener.garden.maintenance.repairs import Crossing
from gardener.garden.maintenance.updates import Update
from gardener.garden.shoots import FAILED, last_operation, workers
from gardener.garden.versions import parse_version
from kube.objects import Object, annotations, is_truthy, mapping, metadata, text
from kube.paths import at, mapping_at

_TASKS = ("deployInfrastructure", "deployDNSRecordInternal", "deployDNSRecordExternal", "deployDNSRecordIngress")
_RESTART_CONTROL_PLANE, _RESTART_ADDONS = "restartControlPlanePods", "restartCoreAddons"
_REPLACED = (None, "", keys.OPERATION_MAINTAIN, keys.OPERATION_RETRY, keys.OPERATION_RECONCILE)
"""Operations that may be replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """Components that are restarted, too."""

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
    """Other changes, with their reasons."""
    binding: Object | None = None
    """The CredentialsBinding that the maintained Shoot gets instead of its SecretBinding."""

    @property
    def updates_of_kubernetes(self) -> list[Update]:
        first = [] if self.control_plane is None else [self.control_plane]
        return [*first, *(update for _, update in self.pools)]

    @property
    def updates(self) -> list[Update]:
        return [*self.updates_of_kubernetes, *(update for _, update in self.images)]

    @property
    def is_change(self) -> bool:
        return bool(self.updates or self.texts)


def _no_binding() -> None:
    return None


def plan(
    shoot: Object,
    profile: Object,
    *,
    now: datetime,
    restarts: Restarts,
    replacement: Callable[[], Object | None] = _no_binding,
) -> Plan:
    """Plan the maintenance at this time.

    Args:
        shoot: the present Shoot.
        profile: the spec of the Shoot's cloud profile, with the changes of the project.
        now: decides which versions have expired.
        restarts: components that are restarted, too.
        replacement: finds the CredentialsBinding that may replace the Shoot's SecretBinding; see `bindings`.
    """
    spec = copy.deepcopy(mapping(shoot.get("spec")))
    versions = choose(spec, profile, now=now)
    crossing = _crossing(text(at(spec, "kubernetes", "version")), versions.control_plane)
    _set_versions(spec, versions)
    texts = list(repairs.all_repairs(spec, crossing)) if crossing else []
    binding = repairs.refer_to_credentials(spec, crossing, replacement) if crossing else None
    if binding is not None:
        texts.append(repairs.credentials_text(binding))
    meta, operation = _metadata(shoot, restarts)
    if operation:
        texts.append(f'Added "{operation}" operation annotation')
    return Plan(
        maintained={**shoot, "metadata": meta, "spec": spec},
        control_plane=versions.update,
        pools=[(pool.name, pool.kubernetes) for pool in versions.pools if pool.kubernetes is not None],
        images=[(pool.name, pool.image.update) for pool in versions.pools if pool.image.update is not None],
        texts=texts,
        binding=binding,
    )


# --- versions


def _set_versions(spec: Object, versions: Versions) -> None:
    if versions.control_plane != text(at(spec, "kubernetes", "version")):
        mapping_at(spec, "kubernetes")["version"] = versions.control_plane
    for worker, pool in zip(workers(spec), versions.pools, strict=True):
        if pool.image.update is not None and pool.image.update.succeeded:
            mapping_at(worker, "machine", "image")["version"] = pool.image.version
        if pool.kubernetes is not None and pool.kubernetes.succeeded:
            mapping_at(worker, "kubernetes")["version"] = pool.version


def _crossing(old: str, new: str) -> Crossing | None:
    before, after = parse_version(old), parse_version(new)
    return Crossing(before, after) if before is not None and after is not None else None


# --- operation and tasks


def _metadata(shoot: Object, restarts: Restarts) -> tuple[Object, str]:
    """Metadata with the annotations of the maintained Shoot; and its operation, if it is not the usual one."""
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
