"""What a Shoot reports while it is worked on is what it reports with the original, but for what is listed here.

The sequence of texts depends on how long tasks take. So compared are the tasks, the order in which they come, and the
texts and conditions of an operation's start and end. `test_shoot_life.py` compares what a Shoot reports in its real life.
"""

from collections.abc import Collection, Mapping
from itertools import pairwise

import pytest

from agent.gardenlet.flow.graph import Graph, Walk
from agent.gardenlet.shoot.main.controller import FLOWS
from agent.gardenlet.shoot.main.operation import ShootOperation, running_after
from agent.gardenlet.shoot.main.rules import status
from components.control_plane import Running
from conformance.shoot_operations import CREATE, DELETE, HIBERNATE, PHASES, RECONCILE, recorded
from gardener import operations
from gardener.api.garden import SHOOTS
from kit.garden_objects import garden_object
from kit.gardenlet_controllers import gardenlet_config, local_fields
from kit.shoot_components import bare_operation
from kube.clock import utc_now
from kube.objects import Object, mappings

NOW = utc_now()
KINDS = {CREATE: operations.CREATE, DELETE: operations.DELETE}
"""Of operations; the others are of kind Reconcile."""
RECONCILIATIONS = [each for each in PHASES if each != DELETE]

# --- what is listed

_NO_INGRESS, _NO_LOGS, _NO_MONITORING = "no ingress is made", "no logs are collected", "no monitoring is deployed"
_NO_SNI, _WITH_IT = "no SNI is used", "the task that deploys or removes it does that, too"
NOT_OURS: Mapping[str, str] = {
    "Delete public service account signing keys from Garden cluster": "none are written",
    "Deleting Bastions": "without workers there never are any",
    "Deleting Plutono in Seed": _NO_MONITORING,
    "Deleting Shoot Alertmanager": _NO_MONITORING,
    "Deleting Shoot Prometheus": _NO_MONITORING,
    "Deleting logging stack in Seed": _NO_LOGS,
    "Deploying Kubernetes API server ingress with trusted certificate in the Seed cluster": _NO_INGRESS,
    "Deploying Kubernetes API server service SNI settings in the Seed cluster": _NO_SNI,
    "Deploying control plane blackbox-exporter": _NO_MONITORING,
    "Deploying shoot logging stack in Seed": _NO_LOGS,
    "Destroying Kubernetes API server ingress with trusted certificate": _NO_INGRESS,
    "Destroying Kubernetes API server service SNI": _NO_SNI,
    "Destroying control plane blackbox-exporter": _NO_MONITORING,
    "Destroying ingress domain DNS record if hibernated": _NO_INGRESS,
    "Reconciling Plutono for Shoot in Seed for the logging stack": _NO_LOGS,
    "Reconciling Plutono for Shoot in Seed for the monitoring stack": _NO_MONITORING,
    "Reconciling Shoot Alertmanager": _NO_MONITORING,
    "Reconciling Shoot Prometheus": _NO_MONITORING,
    "Scaling up Kubernetes controller manager": _WITH_IT,
    "Scaling up etcd main and event": _WITH_IT,
    "Setting gardener-resource-manager replicas to 2": _WITH_IT,
    "Waiting until Kubernetes API server has been deleted": _WITH_IT,
    "Waiting until all extension resources have been deleted": "extensions of both stages are waited for",
    "Waiting until main and event etcd have been destroyed": _WITH_IT,
}
"""Names of tasks that are recorded -> why there are none such."""
NOT_RECORDED: Mapping[str, str] = {
    "Deploying Shoot namespace in Seed": "it was over before it could be seen, in the deletion",
    "Destroying Kubernetes controller manager": "there it goes with the namespace",
    "Publishing the authority for client certificates": "there the same task does it that makes it",
    "Waiting until kube-controller-manager reports readiness": "there only new signing keys wait for it",
}
"""Names of our tasks -> why they are not recorded for an operation in which they run."""
_NOT_REACHED = "what is to sleep is not reached, whether it runs now or not; the wake-up does it"
NOT_ASLEEP: Mapping[str, str] = {
    "Deploying Gardener shoot access resources": _NOT_REACHED,
    "Ensuring advertised addresses for the Shoot": _NOT_REACHED,
    "Initializing connection to Shoot": _NOT_REACHED,
}
"""Names of our tasks that are recorded when a Shoot goes to sleep -> why they do not run then."""
_FOR_WORKERS = "only what has workers needs that order; here nothing is between these tasks"
FREE: Mapping[tuple[str, str], str] = {
    (
        "Initializing secrets management",
        "Deploying Kubernetes API server service in the Seed cluster",
    ): _FOR_WORKERS,
    (
        "Deploying referenced resources",
        "Deploying Kubernetes API server service in the Seed cluster",
    ): _FOR_WORKERS,
    (
        "Waiting until extension resources handled after kube-apiserver are ready",
        "Deploying shoot system resources",
    ): _FOR_WORKERS,
    (
        "Waiting until extension resources handled after kube-apiserver are ready",
        "Deploying shoot cluster identity",
    ): _FOR_WORKERS,
}
"""Which task comes after which one there, and does not here -> why."""
_KEPT_UNTIL_THEN = "what it scales down is not deployed or used any more by then"
_DATA = "data goes last"
_NEEDS_TOKEN = "it comes up with a token, which the resource manager requests"
_CONTROLLER_MANAGER = "Waiting until kube-controller-manager reports readiness"
BOUND: Mapping[tuple[str, str], str] = {
    ("Deploying Kubernetes controller manager", "Hibernating control plane"): _KEPT_UNTIL_THEN,
    ("Deleting stale extension resources", "Hibernating control plane"): _KEPT_UNTIL_THEN,
    ("Deploying shoot namespaces system component", "Hibernating control plane"): _KEPT_UNTIL_THEN,
    ("Deploying gardener-resource-manager", _CONTROLLER_MANAGER): _NEEDS_TOKEN,
    ("Waiting until gardener-resource-manager reports readiness", _CONTROLLER_MANAGER): _NEEDS_TOKEN,
    ("Deleting referenced resources", "Destroying main and events etcd"): _DATA,
    ("Destroying internal domain DNS record", "Destroying main and events etcd"): _DATA,
}
"""Which task comes after which one here, and does not there -> why."""

# --- the original's flows

_FIRST, _THEN = "Waiting until extension resources ", " are ready"
ORDER: Mapping[str, Collection[str]] = {
    "namespace": (),
    "identity": ["namespace"],
    "secrets": ["namespace"],
    "referenced": ["namespace"],
    "infrastructure": ["secrets", "referenced"],
    "service": ["namespace", "identity", "infrastructure"],
    "address": ["service"],
    "advertised": ["address"],
    "internal": ["referenced", "address"],
    "external": ["referenced", "address"],
    "entry": ["namespace"],
    "entry ready": ["entry"],
    "etcd": ["secrets", "entry ready"],
    "etcd ready": ["etcd"],
    "before": ["secrets", "referenced", "infrastructure"],
    "before ready": ["before"],
    "API server": ["secrets", "etcd", "etcd ready", "address", "before ready", "infrastructure"],
    "API server ready": ["API server"],
    "resource manager": ["API server ready"],
    "resource manager ready": ["resource manager"],
    "namespaces": ["resource manager"],
    "namespaces ready": ["namespaces", "resource manager ready"],
    "access": ["secrets", "resource manager ready"],
    "connection": ["API server ready", "internal", "access"],
    "controller manager": ["secrets", "API server ready"],
    "controller manager ready": ["controller manager"],
    "after": ["referenced", "connection"],
    "after ready": ["after"],
    "hibernate": ["referenced", "connection"],
    "hibernated": ["hibernate"],
    "operating system": ["referenced", "infrastructure", "after ready", "hibernated"],
    "shoot identity": ["resource manager", "identity", "operating system"],
    "system": ["resource manager ready", "connection", "operating system", "namespaces ready"],
    "stale": ["connection"],
    "stale gone": ["stale"],
    "sleep": ["connection", "after ready", "hibernated", "operating system"],
    "hibernate after": ["sleep"],
    "hibernated after": ["hibernate after"],
    "no external": ["sleep"],
    "no internal": ["sleep"],
}
"""Of the reconciliation: task -> after which tasks it comes. `infrastructure` and `operating system` are for workers,
and what comes after them without workers still comes after what is before them."""
NAMES: Mapping[str, str] = {
    "namespace": "Deploying Shoot namespace in Seed",
    "identity": "Ensuring Shoot cluster identity",
    "secrets": "Initializing secrets management",
    "referenced": "Deploying referenced resources",
    "service": "Deploying Kubernetes API server service in the Seed cluster",
    "address": "Waiting until Kubernetes API server service in the Seed cluster has reported readiness",
    "advertised": "Ensuring advertised addresses for the Shoot",
    "internal": "Deploying internal domain DNS record",
    "external": "Deploying external domain DNS record",
    "entry": "Deploying backup entry",
    "entry ready": "Waiting until the backup entry has been reconciled",
    "etcd": "Deploying main and events etcd",
    "etcd ready": "Waiting until main and event etcd report readiness",
    "before": "Deploying extension resources before kube-apiserver",
    "before ready": f"{_FIRST}handled before kube-apiserver{_THEN}",
    "API server": "Deploying Kubernetes API server",
    "API server ready": "Waiting until Kubernetes API server rolled out",
    "resource manager": "Deploying gardener-resource-manager",
    "resource manager ready": "Waiting until gardener-resource-manager reports readiness",
    "namespaces": "Deploying shoot namespaces system component",
    "namespaces ready": "Waiting until shoot namespaces have been reconciled",
    "access": "Deploying Gardener shoot access resources",
    "connection": "Initializing connection to Shoot",
    "controller manager": "Deploying Kubernetes controller manager",
    "controller manager ready": "Waiting until kube-controller-manager reports readiness",
    "after": "Deploying extension resources after kube-apiserver",
    "after ready": f"{_FIRST}handled after kube-apiserver{_THEN}",
    "hibernate": "Hibernating extension resources before kube-apiserver hibernation",
    "hibernated": f"{_FIRST}hibernated before kube-apiserver hibernation{_THEN}",
    "shoot identity": "Deploying shoot cluster identity",
    "system": "Deploying shoot system resources",
    "stale": "Deleting stale extension resources",
    "stale gone": "Waiting until stale extension resources are deleted",
    "sleep": "Hibernating control plane",
    "hibernate after": "Hibernating extension resources after kube-apiserver hibernation",
    "hibernated after": f"{_FIRST}hibernated after kube-apiserver hibernation{_THEN}",
    "no external": "Destroying external domain DNS record if hibernated",
    "no internal": "Destroying internal domain DNS record if hibernated",
}
DELETION = (
    "Ensuring Shoot cluster identity",
    "Deploying Kubernetes API server service in the Seed cluster",
    "Waiting until Kubernetes API LoadBalancer in the Seed cluster has reported readiness",
    "Deploying Kubernetes API server",
    "Waiting until Kubernetes API server reports readiness",
    "Deploying gardener-resource-manager",
    "Waiting until gardener-resource-manager reports readiness",
    "Deploying Gardener shoot access resources",
    "Initializing connection to Shoot",
    "Cleaning up webhooks",
    "Waiting until kube-controller-manager is active",
    "Cleaning extended API groups",
    "Cleaning Kubernetes resources",
    "Deleting managed resources",
    "Waiting until managed resources have been deleted",
    "Deleting extension resources before kube-apiserver",
    "Waiting until extension resources that should be handled before kube-apiserver have been deleted",
    "Waiting until shoot managed resources have been deleted",
    "Deleting Kubernetes API server",
    "Deleting extension resources after kube-apiserver",
    "Waiting until extension resources that should be handled after kube-apiserver have been deleted",
    "Destroying internal domain DNS record",
    "Destroying main and events etcd",
    "Deleting shoot namespace in Seed",
    "Waiting until shoot namespace in Seed has been deleted",
)
"""Stages of the deletion: each comes after the one before."""


def _operation(phase: str) -> ShootOperation:
    """As the graph reads it, with nothing that a task would use."""
    hibernates = phase == HIBERNATE
    shoot = {"metadata": {"name": "a"}, "spec": {"hibernation": {"enabled": hibernates}}, "status": {}}
    kind = KINDS.get(phase, operations.RECONCILE)
    return bare_operation(
        config=gardenlet_config("s", **local_fields()),
        kind=kind,
        shoot=shoot,
        running=running_after(shoot, kind),
        seed_object={"spec": {"backup": {"provider": "local"}}},
        namespace_lives=True,
        cleans_up=True,
    )


def _flow(phase: str) -> Graph[ShootOperation]:
    return FLOWS[KINDS.get(phase, operations.RECONCILE)]


def _tasks(phase: str) -> dict[str, str]:
    """Those that run: name by ID."""
    graph = _flow(phase)
    left_out = graph.left_out(_operation(phase))
    return {each.id: each.name for each in graph.tasks.values() if each.id not in left_out}


def _earlier(after: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """All that comes before each task, directly or not."""
    found: dict[str, set[str]] = {}

    def before(task: str) -> set[str]:
        if task not in found:
            found[task] = {each for first in after[task] for each in (first, *before(first))}
        return found[task]

    for task in after:
        before(task)
    return found


def _pairs(phase: str) -> set[tuple[str, str]]:
    """Names of tasks that run, the first before the second."""
    names, graph = _tasks(phase), _flow(phase)
    earlier = _earlier({each.id: each.after for each in graph.tasks.values()})
    return {(names[first], names[then]) for then in names for first in earlier[then] & names.keys()}


# --- tasks


@pytest.mark.parametrize("phase", PHASES)
def test_tasks_are_those_that_are_recorded(phase: str) -> None:
    ours, theirs = set(_tasks(phase).values()), recorded(phase).tasks
    assert theirs - ours == {*(NOT_OURS.keys() & theirs), *(NOT_ASLEEP if phase == HIBERNATE else ())}
    assert ours - theirs == NOT_RECORDED.keys() & ours - theirs


def test_all_that_is_listed_is_needed() -> None:
    ours = {name for phase in PHASES for name in _tasks(phase).values()}
    theirs = {name for phase in PHASES for name in recorded(phase).tasks}
    assert NOT_OURS.keys() <= theirs - ours
    assert ours >= NOT_RECORDED.keys()


@pytest.mark.parametrize("phase", PHASES)
def test_what_comes_later_was_not_seen_earlier(phase: str) -> None:
    seen = recorded(phase).tasks
    known = [(first, then) for first, then in _pairs(phase) if {first, then} <= seen]
    assert len(known) > 100
    wrong = {pair for pair in known if not recorded(phase).is_before(*pair)}
    assert wrong <= BOUND.keys()


@pytest.mark.parametrize("phase", RECONCILIATIONS)
def test_tasks_of_a_reconciliation_have_the_order_of_the_original(phase: str) -> None:
    runs = set(_tasks(phase).values()) - (NOT_RECORDED.keys() - set(NAMES.values()))
    theirs = {
        (NAMES[first], NAMES[then])
        for then, earlier in _earlier(ORDER).items()
        for first in earlier
        if {first, then} <= NAMES.keys()
    }
    theirs = {pair for pair in theirs if runs.issuperset(pair)}
    ours = _pairs(phase)
    assert _with(ours, FREE, runs) == _with(theirs, BOUND, runs)


def _with(pairs: set[tuple[str, str]], more: Collection[tuple[str, str]], runs: set[str]) -> set[tuple[str, str]]:
    """All pairs that follow from these and those."""
    after: dict[str, set[str]] = {name: set() for name in runs}
    for first, then in {*pairs, *more}:
        if runs.issuperset((first, then)):
            after[then].add(first)
    return {(first, then) for then, earlier in _earlier(after).items() for first in earlier}


def test_stages_of_a_deletion_have_the_order_of_the_original() -> None:
    ours = _pairs(DELETE)
    assert [pair for pair in pairwise(DELETION) if pair not in ours] == []


# --- texts


def _shoot(phase: str) -> Object:
    shoot = garden_object(SHOOTS)
    shoot["metadata"]["generation"] = 1
    shoot["spec"] |= {"seedName": "local", "hibernation": {"enabled": phase == HIBERNATE}}
    return shoot


@pytest.mark.parametrize("phase", PHASES)
def test_an_operation_begins_and_ends_as_recorded(phase: str) -> None:
    kind, shoot = KINDS.get(phase, operations.RECONCILE), _shoot(phase)
    begun = status.begun(shoot, kind, gardener={"version": "1"}, technical_id="", now=NOW)
    ended = status.succeeded(shoot, {}, kind, rolled_out=shoot, now=NOW)
    ours = [tuple(each["lastOperation"][name] for name in _SAID) for each in (begun, ended)]
    assert ours == [tuple(recorded(phase).reported[i]) for i in (0, -1)]
    assert ended["hibernated"] is recorded(phase).hibernated


_SAID = ("type", "state", "progress", "description")


@pytest.mark.parametrize("phase", PHASES)
def test_a_flow_begins_and_ends_as_recorded(phase: str) -> None:
    walk = Walk(_flow(phase), left_out=_flow(phase).left_out(_operation(phase)))
    texts = [(walk.snapshot().progress, walk.snapshot().description)]
    while tasks := walk.start():
        for task in tasks:
            walk.end(task)
    texts.append((walk.snapshot().progress, walk.snapshot().description))
    assert texts == [recorded(phase).reported[i][2:] for i in (1, -2)]


@pytest.mark.parametrize("phase", RECONCILIATIONS)
def test_conditions_are_to_be_checked_after_it_as_recorded(phase: str) -> None:
    """Not after a deletion: with its success, the Shoot goes."""
    before, after = recorded(phase).before, recorded(phase).after
    listed = [{"type": name, **found._asdict()} for name, found in before.items()]
    shoot = _shoot(phase)
    ended = status.succeeded(shoot, {"conditions": listed}, operations.RECONCILE, rolled_out=shoot, now=NOW)
    ours = {
        each["type"]: tuple(each[name] for name in ("status", "reason", "message"))
        for each in mappings(ended["conditions"])
    }
    assert ours == after


def test_a_reconciliation_that_changes_nothing_has_all_tasks_of_a_creation() -> None:
    assert _tasks(CREATE) == _tasks(RECONCILE)
    assert _operation(RECONCILE).running is Running.AWAKE
