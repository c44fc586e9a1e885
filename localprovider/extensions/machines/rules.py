"""Which Nodes a worker pool is to have, and the next step there: pure.

Nodes whose machines would be others than the pool asks for now are replaced: no more than `maxSurge` are there beside,
and no more than `maxUnavailable` are missing meanwhile.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kube.objects import Object, annotations, condition, integer, key, labels, mapping, string_map, text, texts
from kube.paths import at
from kube.resources import LEASES, NODES
from localprocesses.components import NODE_ANNOTATION

POOL = "worker.gardener.cloud/pool"
VERSION = "worker.gardener.cloud/kubernetes-version"
SECRET_NAME = "worker.gardener.cloud/gardener-node-agent-secret-name"
APPLIED = "checksum/cloud-config-data"
CLASS = "local.provider/machine-class"
"""A label of Nodes: what their machines are."""
_OF_MACHINES = ("machineType", "machineImage", "volume", "dataVolumes", "architecture")
SIZES = "local.provider/sizes"
"""An annotation of a Worker whose Nodes are being replaced: how many each pool has, without surplus ones."""
_LONGEST_LEASE = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Attributes: create, delete: names of Nodes. Neither: it is to be waited for Nodes, or all is done."""

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    is_done: bool = False


def class_of(pool: Object) -> str:
    """Of its machines: another one is another machine. A patch of Kubernetes is not."""
    minor = ".".join(text(pool.get("kubernetesVersion")).split(".")[:2])
    agent = text(mapping(pool.get("labels")).get(SECRET_NAME))
    whole = [minor, agent, *(pool.get(name) for name in _OF_MACHINES)]
    return hashlib.sha256(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)).hexdigest()[:5]


def deployments(namespace: str, pool: Object) -> Iterator[Object]:
    """As the status of the Worker names them: one a zone."""
    zones = texts(pool.get("zones")) or [""]
    for index in range(len(zones)):
        counts = {name: _share(integer(pool.get(name)), len(zones), index) for name in ("minimum", "maximum")}
        yield {"name": f"{namespace}-{text(pool.get('name'))}-z{index + 1}", **counts}


def _share(whole: int, parts: int, index: int) -> int:
    return whole // parts + (1 if index < whole % parts else 0)


def sizes_of(pools: Sequence[Object], nodes: Sequence[Object], noted: Mapping[str, Any]) -> dict[str, int]:
    """How many Nodes each pool is to have: as many as there are, or were before a replacement, within its limits.

    Args: noted: by pool how many there were.
    """
    found: dict[str, int] = {}
    for pool in pools:
        name, least, most = text(pool.get("name")), integer(pool.get("minimum")), integer(pool.get("maximum"))
        found[name] = max(least, min(integer(noted.get(name)) or len(_own(pool, nodes)), most))
    return found


def is_outdated(pool: Object, nodes: Sequence[Object]) -> bool:
    """Whether Nodes are to be replaced."""
    return any(labels(each).get(CLASS) != class_of(pool) for each in _own(pool, nodes))


def next_step(namespace: str, pool: Object, nodes: Sequence[Object], *, size: int) -> Step:
    """Args: nodes: of the Shoot. size: how many the pool is to have."""
    wanted, own = class_of(pool), _own(pool, nodes)
    new = [each for each in own if labels(each).get(CLASS) == wanted]
    old = sorted(key(each).name for each in own if labels(each).get(CLASS) != wanted)
    surge, unavailable = _count(pool.get("maxSurge"), size), _count(pool.get("maxUnavailable"), size)
    if not surge and not unavailable:
        surge = 1
    missing = size - len(new)
    if not old:
        surplus = sorted((key(each).name for each in new), key=_number)[size:]
        names = _names(namespace, pool, new, missing)
        is_ready = all(is_node_ready(each) for each in new)
        return Step(create=names, delete=tuple(surplus), is_done=not names and not surplus and is_ready)
    names = _names(namespace, pool, new, min(missing, size + surge - len(own)))
    ready = sum(is_node_ready(each) for each in own)
    expendable = max(0, ready - max(0, size - unavailable), len(own) - size - surge)
    return Step(create=names, delete=tuple(old[:expendable]))


def _names(namespace: str, pool: Object, new: Sequence[Object], count: int) -> tuple[str, ...]:
    prefix = f"{namespace}-{text(pool.get('name'))}-{class_of(pool)}"
    taken = {key(each).name for each in new}
    free = (name for number in range(len(taken) + max(count, 0)) if (name := f"{prefix}-{number}") not in taken)
    return tuple(name for name, _ in zip(free, range(count), strict=False))


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _count(value: Any, size: int) -> int:
    """Of a number, or a share of the size."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-size * int(value[:-1]) // 100)
    return integer(value)


def _own(pool: Object, nodes: Sequence[Object]) -> list[Object]:
    return [each for each in nodes if labels(each).get(POOL) == text(pool.get("name"))]


def is_node_ready(node: Object) -> bool:
    return mapping(condition(node, "Ready")).get("status") == "True"


# --- objects


def node(name: str, pool: Object, *, region: str, checksum: str) -> Object:
    """Args: checksum: of the configuration that its agent has applied."""
    annotation, value = NODE_ANNOTATION
    zones = texts(pool.get("zones"))
    places = {"topology.kubernetes.io/region": region, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if zones:
        places["topology.kubernetes.io/zone"] = zones[_number(name) % len(zones)]
    meta = {
        "name": name,
        "labels": {**places, **labels_of(pool), CLASS: class_of(pool)},
        "annotations": {**string_map(pool.get("annotations")), annotation: value, APPLIED: checksum},
    }
    taints = list(pool.get("taints") or ())
    return {**NODES.type_meta, "metadata": meta, "spec": {"taints": taints} if taints else {}}


def labels_of(pool: Object) -> dict[str, str]:
    return {**string_map(pool.get("labels")), VERSION: text(pool.get("kubernetesVersion"))}


def change_of(live: Object, pool: Object, *, checksum: str) -> Object:
    """What its agent changes of a Node that stays; empty: nothing."""
    wanted, noted = labels_of(pool), {**string_map(pool.get("annotations")), APPLIED: checksum}
    meta: Object = {}
    if not wanted.items() <= labels(live).items():
        meta["labels"] = wanted
    if not noted.items() <= annotations(live).items():
        meta["annotations"] = noted
    return {"metadata": meta} if meta else {}


def version_change_of(live: Object, pool: Object) -> Object:
    """Of its status, when its kubelet has become another one; empty: it has not, or has said nothing yet."""
    wanted, having = f"v{text(pool.get('kubernetesVersion'))}", at(live, "status", "nodeInfo", "kubeletVersion")
    return {} if not having or having == wanted else {"status": {"nodeInfo": {"kubeletVersion": wanted}}}


def lease(node_name: str, *, now: str) -> Object:
    """Of the agent of a Node. It is played, so it never falls silent."""
    name = f"gardener-node-agent-{node_name}"
    wanted = {"holderIdentity": node_name, "leaseDurationSeconds": _LONGEST_LEASE, "renewTime": now}
    return {**LEASES.type_meta, "metadata": {"name": name, "namespace": "kube-system"}, "spec": wanted}
