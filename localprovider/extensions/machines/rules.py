"""Desired Nodes of a worker pool, and the next step towards them: pure.

Nodes whose machines differ from the pool's current settings are replaced, with no more than `maxSurge` additional ones,
and no more than `maxUnavailable` missing meanwhile.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kube.objects import (
    Object,
    annotations,
    condition,
    integer,
    key,
    labels,
    mapping,
    mappings,
    string_map,
    text,
    texts,
)
from kube.paths import at
from kube.resources import LEASES, NODES
from localprocesses.components import NODE_ANNOTATION

POOL = "worker.gardener.cloud/pool"
VERSION = "worker.gardener.cloud/kubernetes-version"
SECRET_NAME = "worker.gardener.cloud/gardener-node-agent-secret-name"
APPLIED = "checksum/cloud-config-data"
CLASS = "local.provider/machine-class"
"""Label of Nodes with the hash of their machine's settings."""
_OF_MACHINES = ("machineType", "machineImage", "volume", "dataVolumes", "architecture")
SIZES = "local.provider/sizes"
"""Annotation of a Worker whose Nodes are being replaced: size of each pool, without surplus Nodes."""
_LONGEST_LEASE = 2**31 - 1
_GZIP, _MOST = 31, 16 << 20
"""Format, and maximum number of bytes, of saved machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Next step of a pool.

    Attributes:
        create, delete: names of Nodes. If both are empty, either all is done, or Nodes are not ready yet.
    """

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    is_done: bool = False


def class_of(pool: Object) -> str:
    """Hash of the settings of its machines; a change means other machines. A patch of Kubernetes is no change."""
    minor = ".".join(text(pool.get("kubernetesVersion")).split(".")[:2])
    agent = text(mapping(pool.get("labels")).get(SECRET_NAME))
    whole = [minor, agent, *(pool.get(name) for name in _OF_MACHINES)]
    return hashlib.sha256(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)).hexdigest()[:5]


def deployments(namespace: str, pool: Object) -> Iterator[Object]:
    """MachineDeployments for the status of the Worker, one per zone."""
    zones = texts(pool.get("zones")) or [""]
    for index in range(len(zones)):
        counts = {name: _share(integer(pool.get(name)), len(zones), index) for name in ("minimum", "maximum")}
        yield {"name": f"{namespace}-{text(pool.get('name'))}-z{index + 1}", **counts}


def _share(whole: int, parts: int, index: int) -> int:
    return whole // parts + (1 if index < whole % parts else 0)


def sizes_of(pools: Sequence[Object], nodes: Sequence[Object], noted: Mapping[str, Any]) -> dict[str, int]:
    """Desired sizes of the pools: as many Nodes as exist, or existed before a replacement, within the pool's limits.

    `noted` are the sizes before the replacement, by pool.
    """
    found: dict[str, int] = {}
    for pool in pools:
        name, least, most = text(pool.get("name")), integer(pool.get("minimum")), integer(pool.get("maximum"))
        found[name] = max(least, min(integer(noted.get(name)) or len(_own(pool, nodes)), most))
    return found


def is_outdated(pool: Object, nodes: Sequence[Object]) -> bool:
    """Whether Nodes have to be replaced."""
    return any(labels(each).get(CLASS) != class_of(pool) for each in _own(pool, nodes))


def next_step(namespace: str, pool: Object, nodes: Sequence[Object], *, size: int) -> Step:
    """Return the next step of a pool; `nodes` are those of the Shoot, `size` is the desired number in the pool."""
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
    """Value of a number, or of a share of the size."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-size * int(value[:-1]) // 100)
    return integer(value)


def _own(pool: Object, nodes: Sequence[Object]) -> list[Object]:
    return [each for each in nodes if labels(each).get(POOL) == text(pool.get("name"))]


def is_node_ready(node: Object) -> bool:
    return mapping(condition(node, "Ready")).get("status") == "True"


# --- objects


def saved_machines(state: Object) -> list[Object]:
    """Return the MachineSets and Machines in the state of a Worker, which its Shoot has brought from another seed."""
    unpacked = zlib.decompressobj(wbits=_GZIP)
    content = unpacked.decompress(base64.b64decode(text(state.get("state"))), _MOST)
    if unpacked.unconsumed_tail:
        raise ValueError(f"the state of the Worker is longer than {_MOST} bytes")
    found = mapping(orjson.loads(content)) if content else {}
    deployments = [mapping(each) for each in mapping(found.get("machineDeployments")).values()]
    return [each for field in ("machineSets", "machines") for one in deployments for each in mappings(one.get(field))]


def node(name: str, pool: Object, *, region: str, checksum: str) -> Object:
    """Return a Node; `checksum` is that of the configuration that its agent has applied."""
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
    """Return the changes that the agent of an existing Node makes; empty if there are none."""
    wanted, noted = labels_of(pool), {**string_map(pool.get("annotations")), APPLIED: checksum}
    meta: Object = {}
    if not wanted.items() <= labels(live).items():
        meta["labels"] = wanted
    if not noted.items() <= annotations(live).items():
        meta["annotations"] = noted
    return {"metadata": meta} if meta else {}


def version_change_of(live: Object, pool: Object) -> Object:
    """Return the change of the status after an update of kubelet; empty if there is none, or no status yet."""
    wanted, having = f"v{text(pool.get('kubernetesVersion'))}", at(live, "status", "nodeInfo", "kubeletVersion")
    return {} if not having or having == wanted else {"status": {"nodeInfo": {"kubeletVersion": wanted}}}


def lease(node_name: str, *, now: str) -> Object:
    """Lease of the agent of a simulated Node, which never expires."""
    name = f"gardener-node-agent-{node_name}"
    wanted = {"holderIdentity": node_name, "leaseDurationSeconds": _LONGEST_LEASE, "renewTime": now}
    return {**LEASES.type_meta, "metadata": {"name": name, "namespace": "kube-system"}, "spec": wanted}
