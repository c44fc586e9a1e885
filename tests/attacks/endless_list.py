"""An aggregated API server whose list never ends, or is very long.

    python -m tests.attacks.endless_list [repeats | endless | unfolds]

A ManagedResource has an object of the kind that it serves, so the agent lists the kind. `repeats`: each page continues
with itself. `endless`: there is always another page, of 2 MB. `unfolds`: the one page is sent compressed, and has 150
MiB. The agent is a real process with a control plane of its own; meanwhile a bystander makes small ManagedResources.
"""

import gzip
import itertools
import sys
import threading
import time
from collections.abc import Callable
from functools import cache

import orjson

from attacks.aggregated import Answer, List, things
from attacks.bystanders import Bystander, namespace
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, managed_resource
from kit.processes.agent import AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kube.objects import Object

_SECONDS = 40.0
_OF_A_PAGE, _ITEM_BYTES, _UNFOLDED = 20, 100_000, 150 << 20


def _page(group: str, token: str, count: int, size: int) -> bytes:
    labels = {"resources.gardener.cloud/managed-by": "gardener"}

    def item(number: int) -> Object:
        meta = {"name": f"t{number}", "namespace": "x", "uid": f"u{number}", "resourceVersion": "1", "labels": labels}
        return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": meta, "data": "x" * size}

    head = {"kind": "ThingList", "apiVersion": f"{group}/v1"}
    meta = {"resourceVersion": "1", "continue": token}
    return orjson.dumps({**head, "metadata": meta, "items": [item(number) for number in range(count)]})


def repeats(group: str) -> List:
    body = _page(group, "same", 1, 100)
    return lambda _: (body, {})


def endless(group: str) -> List:
    body, turns = _page(group, "TOKEN", _OF_A_PAGE, _ITEM_BYTES), itertools.count()
    return lambda _: (body.replace(b"TOKEN", b"t%d" % next(turns)), {})


@cache
def _unfolding(group: str) -> Answer:
    body = _page(group, "", _UNFOLDED // _ITEM_BYTES, _ITEM_BYTES)
    return gzip.compress(body, 1), {"Content-Encoding": "gzip"}


def unfolds(group: str) -> List:
    answer = _unfolding(group)
    return lambda _: answer


ATTACKS: dict[str, Callable[[str], List]] = {"repeats": repeats, "endless": endless, "unfolds": unfolds}


def attack(cluster: Cluster, name: str) -> None:
    group = f"{name}.example.com"
    place, victim = namespace(cluster, f"{name}-attacker"), namespace(cluster, f"{name}-victim")
    ends = threading.Event()
    with (
        things(cluster, place, group, ATTACKS[name](group)),
        AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent,
    ):
        agent.wait_until_ready()
        before = agent.resident_bytes
        meta = {"name": "t", "namespace": place.namespace}
        place.create(bundle("listed", {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": meta}))
        place.create(managed_resource("listed"))
        bystander = Bystander(victim, ends, name="small")
        bystander.start()
        time.sleep(_SECONDS)
        ends.set()
        bystander.join()
        reported = place.condition("listed", "ResourcesApplied").get("message") or ""
        peak = resident_peak_bytes(agent)
    print(f"| {name} | {before >> 20} | {peak >> 20} | {bystander.row()} | {reported[:200]} |", flush=True)


def main(names: list[str]) -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        heads = ("List", "MiB before", "at most", "Applied after, s (number)", "Repaired after, s (number)", "Said")
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
        for name in names or ATTACKS:
            attack(cluster, name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
