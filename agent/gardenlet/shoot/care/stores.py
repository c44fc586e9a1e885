"""Watched objects of the seed for all Shoots: parts of control planes, ManagedResources, reports of extensions.

Only the checked fields of each object are kept. A change triggers a check of the Shoot of its namespace, except for
heartbeats, for which the next check is soon enough.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agent.gardenlet.common.views import CONTROLLER_REGISTRATIONS_VIEW, controller_installations_view
from agent.gardenlet.context import Context
from agent.gardenlet.shoot.care.rules.garbage import is_stale, leaving_since
from agent.gardenlet.shoot.care.rules.nodes import Machines, machines
from agent.gardenlet.shoot.care.rules.observed import (
    CONTROL_PLANE,
    MONITORING,
    Heartbeat,
    Part,
    Report,
    of_deployment,
    of_etcd,
    of_stateful_set,
)
from components import kube_apiserver
from components.secrets import labels as names
from gardener import keys
from gardener.api import extensions
from gardener.api.druid import ETCDS
from gardener.api.kinds import MACHINE_DEPLOYMENTS, MACHINES, MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD, SHOOT_CONDITIONS
from gardener.garden.extensions import namespace_of_installation, provided
from kube.clock import time_or_none
from kube.objects import Key, Object, condition, key, labels, mapping, metadata, spec, text, uid
from kube.paths import at, mapping_at
from kube.resources import DEPLOYMENTS, LEASES, PODS, SECRETS, STATEFUL_SETS, Resource
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, EventHandler, Queue
from kube.runtime.predicates import Predicate, changed
from kube.runtime.priorities import CHANGE

_BY_NAMESPACE = "namespace"
_TOGETHER_SECONDS = 1.0
"""Delay that combines simultaneous changes in one check."""
_HEARTBEAT = "gardener-extension-heartbeat"
_REPORTING = (extensions.BACKUP_ENTRIES, *(each for each in extensions.OF_SHOOTS if each != extensions.DNS_RECORDS))
_ROLES = f"{keys.ROLE} in ({CONTROL_PLANE},{MONITORING})"


_NAMED = ("namespace", "name", "uid")
_DIGITS = 11
"""Digits of seconds since 1970 that a date can have."""

# --- projections


def _namespace_of_part(part: Part) -> tuple[str]:
    return (part.name.namespace,)


def _namespace_of(obj: Object) -> tuple[str]:
    return (key(obj).namespace,)


def _managed_resource(obj: Object) -> Object:
    meta, status = metadata(obj), mapping(obj.get("status"))
    kept = {name: meta[name] for name in ("namespace", "name", "generation") if name in meta}
    return {
        "metadata": {**kept, "labels": {keys.CARE_CONDITION: labels(obj).get(keys.CARE_CONDITION, "")}},
        "spec": {"class": spec(obj).get("class")},
        "status": {
            "observedGeneration": status.get("observedGeneration"),
            "conditions": [found for type_ in RESOURCES_GOOD if (found := condition(obj, type_))],
        },
    }


def _report(obj: Object) -> Report:
    found = tuple(each for type_ in SHOOT_CONDITIONS if (each := condition(obj, type_)))
    return Report(kind=obj["kind"], name=key(obj), type=text(spec(obj).get("type")), conditions=found)


def _namespace_of_report(report: Report) -> tuple[str]:
    """Namespace of a report; names of cluster-scoped objects consist of the namespace and the uid of the Shoot."""
    return (report.name.namespace or report.name.name.rpartition("--")[0],)


def _rolled_out(cluster: Object) -> Object:
    """Reduce the Shoot of a Cluster object to the checked fields."""
    shoot = mapping_at(cluster, "spec", "shoot")
    wanted, reported = spec(shoot), mapping(shoot.get("status"))
    return {
        "metadata": {name: value for name, value in metadata(shoot).items() if name in _NAMED},
        "spec": {name: wanted[name] for name in ("kubernetes", "provider", "purpose") if name in wanted},
        "status": {name: reported[name] for name in ("lastOperation", "technicalID") if name in reported},
    }


def _namespace_of_rolled_out(shoot: Object) -> tuple[str]:
    return (text(at(shoot, "status", "technicalID")),)


def _machine(machine: Object) -> Object:
    """Reduce a Machine or MachineDeployment to the checked fields."""
    meta = metadata(machine)
    kept = {name: meta[name] for name in (*_NAMED, "deletionTimestamp") if name in meta}
    phase = at(machine, "status", "currentStatus", "phase")
    return {
        "metadata": kept,
        "spec": {"replicas": spec(machine).get("replicas")},
        "status": {"currentStatus": {"phase": phase}},
    }


def _renewed(lease: Object) -> datetime | None:
    return time_or_none(at(lease, "spec", "renewTime"))


@dataclass(frozen=True, slots=True)
class _Authority:
    """Secret with the certificate of an authority. Attributes: until: end of its validity; None if unknown."""

    namespace: str
    name: str
    until: datetime | None


def _authority(secret: Object) -> _Authority | None:
    name, written = (labels(secret).get(each, "") for each in (names.NAME, names.VALID_UNTIL))
    if name != "ca" and not name.startswith("ca-"):
        return None
    readable = written.isascii() and written.isdecimal() and len(written) <= _DIGITS
    until = datetime.fromtimestamp(int(written), UTC) if readable else None
    return _Authority(key(secret).namespace, name, until)


def _namespace_of_authority(authority: _Authority | None) -> Sequence[str]:
    return () if authority is None else (authority.namespace,)


@dataclass(frozen=True, slots=True)
class StalePod:
    """A pod that may be obsolete. Attributes: leaving_since: start of its deletion; None if it has failed."""

    name: Key
    uid: str
    leaving_since: datetime | None


def _stale_pod(pod: Object) -> StalePod | None:
    return StalePod(key(pod), uid(pod), None) if is_stale(pod) else None


def _leaving_pod(pod: Object) -> StalePod | None:
    since = leaving_since(pod)
    return None if since is None else StalePod(key(pod), uid(pod), since)


def _namespace_of_pod(pod: StalePod | None) -> Sequence[str]:
    return () if pod is None else (pod.name.namespace,)


def _index(of: Callable[[Any], Iterable[str]]) -> tuple[tuple[str, Callable[[Any], Iterable[str]]], ...]:
    return ((_BY_NAMESPACE, of),)


CLUSTERS_VIEW = View(extensions.CLUSTERS, _rolled_out)
DEPLOYMENTS_VIEW, STATEFUL_SETS_VIEW, ETCDS_VIEW = (
    View(each, project, label_selector=_ROLES, indexes=_index(_namespace_of_part))
    for each, project in ((DEPLOYMENTS, of_deployment), (STATEFUL_SETS, of_stateful_set), (ETCDS, of_etcd))
)
MANAGED_RESOURCES_VIEW = View(MANAGED_RESOURCES, _managed_resource, indexes=_index(_namespace_of))
AUTHORITIES_VIEW = View(
    SECRETS,
    _authority,
    form=Form.METADATA,
    label_selector=names.OWN_PERSISTED,
    indexes=_index(_namespace_of_authority),
)
MACHINE_VIEWS = {each: View(each, _machine, indexes=_index(_namespace_of)) for each in (MACHINE_DEPLOYMENTS, MACHINES)}
HEARTBEATS_VIEW = View(LEASES, _renewed, field_selector=f"metadata.name={_HEARTBEAT}")
STALE_PODS_VIEWS = (
    View(PODS, _stale_pod, field_selector="status.phase=Failed", indexes=_index(_namespace_of_pod)),
    View(PODS, _leaving_pod, form=Form.METADATA, indexes=_index(_namespace_of_pod)),
)
REPORTS_VIEWS = {each: View(each, _report, indexes=_index(_namespace_of_report)) for each in _REPORTING}


# --- the stores


class Stores:
    """Args: shoot_of: returns the Shoot of a namespace; None if none was checked yet."""

    def __init__(self, loop: ControlLoop, context: Context, *, shoot_of: Callable[[str], Key | None]) -> None:
        self._loop, self._caches, self._shoot_of = loop, context.seed.caches, shoot_of
        garden = context.garden.caches
        self._installations = loop.watch(garden, controller_installations_view(context.seed_name))
        self._registrations = loop.watch(garden, CONTROLLER_REGISTRATIONS_VIEW)
        self._heartbeats = loop.watch(self._caches, HEARTBEATS_VIEW)
        self._authorities = loop.watch(self._caches, AUTHORITIES_VIEW)
        self._pods: list[Store[StalePod | None]] = [loop.watch(self._caches, each) for each in STALE_PODS_VIEWS]
        self._parts: list[Store[Part]] = []
        self._managed: list[Store[Object]] = []
        self._reports: list[Store[Report]] = []
        self._clusters: list[Store[Object]] = []
        self._machines: dict[Resource, list[Store[Object]]] = {each: [] for each in MACHINE_VIEWS}
        for view in (DEPLOYMENTS_VIEW, STATEFUL_SETS_VIEW):
            self._follow(self._parts, view, _namespace_of_part)
        discovery = context.seed.discovery
        loop.when_served(discovery, [ETCDS], partial(self._follow, self._parts, ETCDS_VIEW, _namespace_of_part))
        loop.when_served(
            discovery,
            [MANAGED_RESOURCES],
            partial(self._follow, self._managed, MANAGED_RESOURCES_VIEW, _namespace_of),
        )
        loop.when_served(
            discovery,
            [extensions.CLUSTERS],
            partial(self._follow, self._clusters, CLUSTERS_VIEW, _namespace_of_rolled_out),
        )
        for kind, view_of_machines in MACHINE_VIEWS.items():
            follow = partial(self._follow, self._machines[kind], view_of_machines, _namespace_of)
            loop.when_served(discovery, [kind], follow)
        for kind, reports in REPORTS_VIEWS.items():
            follow = partial(self._follow, self._reports, reports, _namespace_of_report)
            loop.when_served(discovery, [kind], follow)

    def _follow(self, stores: list[Any], view: View[Any], namespace_of: Callable[[Any], Iterable[str]]) -> None:
        stores.append(self._loop.watch(self._caches, view, _leading(self._shoot_of, namespace_of)))

    @property
    def are_listed(self) -> bool:
        """Whether the first lists of all served kinds are complete."""
        of_machines = [each for stores in self._machines.values() for each in stores]
        late: list[Store[Any]] = [*self._parts, *self._managed, *self._reports, *self._clusters, *of_machines]
        return all(each.synced.is_set() for each in late)

    def rolled_out(self, namespace: str) -> Object | None:
        """The Shoot of a namespace, from its Cluster object."""
        found = (store.get(Key("", namespace)) for store in self._clusters)
        return next((each for each in found if each is not None), None)

    def parts_in(self, namespace: str) -> list[Part]:
        return [each for store in self._parts for each in store.values_by_index(_BY_NAMESPACE, namespace)]

    def managed_resources_in(self, namespace: str) -> list[Object]:
        return [each for store in self._managed for each in store.values_by_index(_BY_NAMESPACE, namespace)]

    def reports_in(self, namespace: str) -> list[Report]:
        return [each for store in self._reports for each in store.values_by_index(_BY_NAMESPACE, namespace)]

    def machines_in(self, namespace: str) -> Machines:
        made, found = (
            [each for store in self._machines[kind] for each in store.values_by_index(_BY_NAMESPACE, namespace)]
            for kind in MACHINE_VIEWS
        )
        return machines(made, found)

    def authorities_in(self, namespace: str) -> dict[str, datetime | None]:
        found = self._authorities.values_by_index(_BY_NAMESPACE, namespace)
        return {each.name: each.until for each in found if each is not None}

    def stale_pods(self, namespace: str) -> list[StalePod]:
        found = (each for store in self._pods for each in store.values_by_index(_BY_NAMESPACE, namespace))
        return [each for each in found if each is not None]

    def heartbeats_of(self, reports: Iterable[Report]) -> dict[tuple[str, str], Heartbeat]:
        """Heartbeats of the extensions of reports, by kind and type; those with unknown installations are left out."""
        wanted = {(each.kind, each.type) for each in reports}
        registered = {
            (each.kind, each.type): key(registration).name
            for registration in self._registrations.values()
            for each in provided(registration)
            if tuple(each) in wanted
        }
        installed = {
            text(at(each, "spec", "registrationRef", "name")): namespace_of_installation(key(each).name)
            for each in self._installations.values()
        }
        return {
            each: Heartbeat(self._heartbeats.get(Key(installed[name], _HEARTBEAT)))
            for each, name in registered.items()
            if name in installed
        }


def _leading(shoot_of: Callable[[str], Key | None], namespace_of: Callable[[Any], Iterable[str]]) -> EventHandler[Any]:
    """Check the Shoot of a changed object; objects of the first list trigger no check."""
    is_changed: Predicate[Any] = changed()

    def handle(queue: Queue, change: Change[Any]) -> None:
        kept = change.new if change.new is not None else change.old
        if change.initial or kept is None or not is_changed(change):
            return
        for namespace in namespace_of(kept):
            if (shoot := shoot_of(namespace)) is not None:
                queue.add_after(shoot, 0.0 if _is_api_server(kept) else _TOGETHER_SECONDS, CHANGE)

    return handle


def _is_api_server(kept: object) -> bool:
    return isinstance(kept, Part) and kept.name.name == kube_apiserver.NAME
