"""What may be wrong with the Nodes of a Shoot's worker pools."""

from collections.abc import Sequence
from typing import NamedTuple

from gardener.error_codes import CONFIGURATION_PROBLEM
from gardener.garden.shoots import workers
from kube.objects import Object, condition, integer, key, labels, mapping, spec, text
from kube.paths import at

POOL = "worker.gardener.cloud/pool"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_OF_CONFIGURATION = ("failed to validate kubelet flags", "failed to validate kubelet configuration")


class NodeProblem(NamedTuple):
    reason: str
    message: str
    codes: tuple[str, ...] = ()


def kept_of(node: Object) -> Object:
    """What is kept of a Node while it is checked."""
    status = mapping(node.get("status"))
    return {
        "metadata": {"name": key(node).name, "labels": {POOL: labels(node).get(POOL, "")}},
        "status": {
            "conditions": [found for type_ in ("Ready", *_PRESSURES) if (found := condition(node, type_)) is not None],
            "nodeInfo": {"kubeletVersion": text(mapping(status.get("nodeInfo")).get("kubeletVersion"))},
        },
    }


def node_problem(shoot: Object, nodes: Sequence[Object]) -> NodeProblem | None:
    """The first one, by pool and name. Args: shoot: as it is rolled out. nodes: see `kept_of`."""
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
    """Another minor version is what a roll-out replaces."""
    wanted = text(at(pool, "kubernetes", "version")) or text(at(shoot, "spec", "kubernetes", "version"))
    having = text(at(node, "status", "nodeInfo", "kubeletVersion")).removeprefix("v")
    if having == wanted or having.split(".")[:2] != wanted.split(".")[:2]:
        return None
    message = f'Node "{key(node).name}" runs kubelet v{having} instead of v{wanted}'
    return NodeProblem("KubeletVersionMismatch", message)
