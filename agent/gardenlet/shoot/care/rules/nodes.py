"""Problems of the Nodes of a Shoot's worker pools: each rule returns the first one, by pool and name.

A Node may be unready, outdated or missing. Its agent may be silent, or not have applied the configuration of its pool.
Machines may be joining or leaving. Many silent kubelets at once may indicate a network problem.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gardener.error_codes import CONFIGURATION_PROBLEM
from gardener.garden.shoots import workers
from gardener.keys import NODE_AGENT_SECRET_NAME
from kube.clock import time_or_none
from kube.objects import Object, annotations, condition, integer, is_deleting, key, labels, mapping, spec, text
from kube.paths import at

POOL = "worker.gardener.cloud/pool"
CHECKSUM, _APPLIED = "checksum/data-script", "checksum/cloud-config-data"
"""Annotations: checksum of a pool's configuration on its Secret, and of the applied configuration on a Node."""
OF_AGENTS = "gardener-node-agent-"
"""Prefix of the name of an agent's Lease; the Node's name follows."""
_MOST_EXPIRED = 0.2
"""Fraction of all Leases of Nodes."""
_DEFAULT_LEASE_SECONDS = 40
_BROKEN = frozenset({"Failed", "Unknown", "CrashLoopBackOff"})
_COMING = frozenset({"", "Pending", "Creating", "InPlaceUpdating"})
"""Phases of machines."""
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_OF_CONFIGURATION = ("failed to validate kubelet flags", "failed to validate kubelet configuration")


class NodeProblem(NamedTuple):
    reason: str
    message: str
    codes: tuple[str, ...] = ()


def kept_of(node: Object) -> Object:
    """Reduce a Node to the fields that are checked."""
    status = mapping(node.get("status"))
    return {
        "metadata": {
            "name": key(node).name,
            "labels": {each: labels(node).get(each, "") for each in (POOL, NODE_AGENT_SECRET_NAME)},
            "annotations": {_APPLIED: annotations(node).get(_APPLIED, "")},
        },
        "spec": {"unschedulable": spec(node).get("unschedulable") is True},
        "status": {
            "conditions": [found for type_ in ("Ready", *_PRESSURES) if (found := condition(node, type_)) is not None],
            "nodeInfo": {"kubeletVersion": text(mapping(status.get("nodeInfo")).get("kubeletVersion"))},
        },
    }


def node_problem(shoot: Object, nodes: Sequence[Object]) -> NodeProblem | None:
    """Args: shoot: as it is rolled out. nodes: see `kept_of`."""
    for pool in workers(spec(shoot)):
        name = text(pool.get("name"))
        own = sorted((each for each in nodes if labels(each).get(POOL) == name), key=key)
        for each in own:
            if (problem := _unhealthy(each) or _other_version(each, pool, shoot)) is not None:
                return problem
        if len(own) < (least := integer(pool.get("minimum"))):
            what = f'Not enough worker nodes registered in worker pool "{name}" to meet minimum desired machine count.'
            return NodeProblem("MissingNodes", f"{what} ({len(own)}/{least}).")
    return None


def _unhealthy(node: Object) -> NodeProblem | None:
    wrong = _wrong(node)
    if not wrong:
        return None
    codes = (CONFIGURATION_PROBLEM,) if any(each in wrong for each in _OF_CONFIGURATION) else ()
    return NodeProblem("NodeUnhealthy", f'Node "{key(node).name}" is unhealthy: {wrong}', codes)


def _wrong(node: Object) -> str:
    if (ready := condition(node, "Ready")) is None:
        return "condition Ready is missing"
    for each, expected in ((ready, "True"), *((condition(node, type_), "False") for type_ in _PRESSURES)):
        if each is not None and each.get("status") != expected:
            what = f"condition {text(each.get('type'))} is {text(each.get('status'))}"
            return f"{what} due to {text(each.get('reason'))}: {text(each.get('message'))}"
    return ""


def _other_version(node: Object, pool: Object, shoot: Object) -> NodeProblem | None:
    """Problem if the kubelet has the wrong patch level; other minor versions are in the middle of a roll-out."""
    wanted = text(at(pool, "kubernetes", "version")) or text(at(shoot, "spec", "kubernetes", "version"))
    having = text(at(node, "status", "nodeInfo", "kubeletVersion")).removeprefix("v")
    if having == wanted or having.split(".")[:2] != wanted.split(".")[:2]:
        return None
    message = f'Node "{key(node).name}" runs kubelet v{having} instead of v{wanted}'
    return NodeProblem("KubeletVersionMismatch", message)


# --- configurations and agents


Configurations = Mapping[str, Mapping[str, str]]
"""Checksums by pool and name of the Secret in the Shoot; a pool whose nodes are being replaced has several."""


def configurations_in(secrets: Iterable[Object]) -> Configurations:
    found: dict[str, dict[str, str]] = {}
    for each in secrets:
        found.setdefault(labels(each).get(POOL, ""), {})[key(each).name] = annotations(each).get(CHECKSUM, "")
    return found


def configuration_problem(shoot: Object, nodes: Sequence[Object], configurations: Configurations) -> NodeProblem | None:
    """First Node whose configuration is outdated; Nodes whose Secret no longer exists are being replaced."""
    reason = "OperatingSystemConfigOutdated"
    for name in (text(pool.get("name")) for pool in workers(spec(shoot))):
        own = sorted((each for each in nodes if labels(each).get(POOL) == name), key=key)
        checksums = configurations.get(name)
        if own and not checksums:
            return NodeProblem(reason, f'The Secret with the configuration of worker pool "{name}" does not exist.')
        for each in own:
            wanted = _wanted(each, checksums or {})
            applied = annotations(each).get(_APPLIED, "")
            if wanted is None or applied == wanted:
                continue
            if not applied:
                message = (
                    f'The agent of node "{key(each).name}" has not reported yet which configuration it has applied.'
                )
                return NodeProblem(reason, message)
            return NodeProblem(reason, f'Node "{key(each).name}" has applied {applied}, expected {wanted}.')
    return None


def _wanted(node: Object, checksums: Mapping[str, str]) -> str | None:
    """Expected checksum; None if it is unknown."""
    name = labels(node).get(NODE_AGENT_SECRET_NAME)
    return checksums.get(name) if name else next(iter(checksums.values()), None) if len(checksums) == 1 else None


def lease_end(lease: Object) -> datetime | None:
    """End of a Lease's validity; None if it was never renewed."""
    renewed = time_or_none(at(lease, "spec", "renewTime"))
    seconds = integer(at(lease, "spec", "leaseDurationSeconds")) or _DEFAULT_LEASE_SECONDS
    return None if renewed is None else renewed + timedelta(seconds=seconds)


def agent_problem(
    nodes: Sequence[Object], leases: Mapping[str, datetime | None], *, now: datetime
) -> NodeProblem | None:
    """Args: leases: ends of the agents' Leases, by Node."""
    for name in sorted(key(each).name for each in nodes):
        if name not in leases:
            return NodeProblem("NodeAgentUnhealthy", f'No agent runs on node "{name}".')
        end = leases[name]
        if end is None or end < now:
            return NodeProblem("NodeAgentUnhealthy", f'The agent on node "{name}" has stopped renewing its Lease.')
    return None


def expiry_problem(leases: Sequence[datetime | None], *, now: datetime) -> NodeProblem | None:
    """Args: leases: ends of the Nodes' Leases."""
    expired = sum(end is None or end < now for end in leases)
    if not leases or expired / len(leases) < _MOST_EXPIRED:
        return None
    message = (
        f"{expired} of {len(leases)} Leases of nodes have expired: kubelets do not run, or can't reach the API server."
    )
    return NodeProblem("TooManyExpiredNodeLeases", message)


# --- machines, in the seed


class Machines(NamedTuple):
    """Attributes:
    wanted: replicas of all MachineDeployments; None if there are none.
    phases: phase of each machine, by name.
    leaving: machines that are being deleted.
    """

    wanted: int | None = None
    phases: Mapping[str, str] = {}
    leaving: frozenset[str] = frozenset()


NO_MACHINES = Machines()


def machines(deployments: Iterable[Object], found: Sequence[Object]) -> Machines:
    wanted = [integer(spec(each).get("replicas")) for each in deployments]
    return Machines(
        wanted=sum(wanted) if wanted else None,
        phases={key(each).name: text(at(each, "status", "currentStatus", "phase")) for each in found},
        leaving=frozenset(key(each).name for each in found if is_deleting(each)),
    )


def scaling_problem(nodes: Sequence[Object], found: Machines) -> NodeProblem | None:
    """Problem if the node count differs from the desired one."""
    if found.wanted is None:
        return None
    usable = sum(_is_usable(each) for each in nodes)
    if usable < found.wanted:
        return NodeProblem("NodesScalingUp", _why_too_few(len(nodes), found.wanted, found))
    if len(nodes) > found.wanted:
        cordoned = sorted(key(each).name for each in nodes if spec(each).get("unschedulable") is True)
        going = (
            f"{len(found.leaving)} machines are being deleted" if found.leaving else "no machine is being deleted yet"
        )
        which = f", cordoned: {', '.join(cordoned[:5])}" if cordoned else ""
        return NodeProblem("NodesScalingDown", f"{len(nodes)} nodes instead of {found.wanted}: {going}{which}.")
    return None


def _is_usable(node: Object) -> bool:
    return (condition(node, "Ready") or {}).get("status") == "True" and spec(node).get("unschedulable") is not True


def _why_too_few(nodes: int, wanted: int, found: Machines) -> str:
    staying = {name: phase for name, phase in found.phases.items() if name not in found.leaving}
    counts = Counter(
        "broken" if phase in _BROKEN else "coming" if phase in _COMING else "there" for phase in staying.values()
    )
    if len(staying) < wanted:
        return f"Machines are being created ({len(staying)}/{wanted})."
    if counts["broken"]:
        named = ", ".join(sorted(name for name, phase in staying.items() if phase in _BROKEN)[:5])
        return f"{counts['broken']} of {wanted} machines have failed: {named}."
    if counts["coming"]:
        return f"{counts['coming']} of {wanted} machines are being created and will join soon."
    return f"Machines have not joined yet, or nodes are cordoned ({nodes}/{wanted} nodes)."
