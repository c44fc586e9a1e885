"""Two agents with leader election under an attack, while the leader is killed.

    python -m tests.attacks.two_replicas

Two processes of this checkout with the times of the manifests, and a control plane of their own. The author of
`both_halves` creates and changes ManagedResources with Secrets that unfold, all the time, and another one has
ManagedResources with lists whose elements are merged by keys. A bystander creates small ManagedResources, one after the
other. Twice the leader is killed by SIGKILL, and started again after the other one has taken over. In the end the audit
log reports how often each object of the bystander was written.
"""

import contextlib
import sys
import threading
import time
from collections import Counter

from attacks import decoding
from attacks.both_halves import NAMESPACE, Attacker
from attacks.bystanders import Bystander
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, managed_resource
from kit.processes.agent import AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.errors import ApiError
from kube.objects import Object

_SECONDS_BEFORE, _SECONDS_UNDER = 10.0, 15.0
_KILLS, _PORTS = 2, 3_000
_USER_AGENT = "gardener-resource-manager"
_WRITES = ("create", "update", "patch", "delete")


class MergeKeys(threading.Thread):
    """Services with thousands of ports, each of which is known by its keys; they change all the time."""

    def __init__(self, place: Place, ends: threading.Event) -> None:
        super().__init__()
        self.place, self.ends = place, ends

    def run(self) -> None:
        number = 0
        while not self.ends.wait(1.0):
            name = f"merged-{number % 5}"
            for kind in ("ManagedResource", "Secret"):
                with contextlib.suppress(ApiError):
                    self.place.delete(kind, name)
            with contextlib.suppress(ApiError):
                self.place.create(bundle(name, _service(name, turn=number)))
                self.place.create(managed_resource(name))
            number += 1


def _service(name: str, *, turn: int) -> Object:
    ports = [{"name": f"p{port}", "port": 1000 + port, "targetPort": turn % 9 + 1} for port in range(_PORTS)]
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}}


def _agent(cluster: Cluster) -> AgentProcess:
    config = sole_configuration(leaderElection={"leaderElect": True, "resourceNamespace": "default"})
    return AgentProcess(config, kubeconfig=cluster.kubeconfig)


class Waits:
    """The longest ones of a bystander, from one look to the next. A wait counts where it ends."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander, self._seen = bystander, (0, 0)

    def longest(self) -> str:
        """Seconds until new ones were applied, and until changed ones were repaired."""
        waits = self._bystander.applied, self._bystander.repaired
        new = [each[seen:] for each, seen in zip(waits, self._seen, strict=True)]
        self._seen = len(waits[0]), len(waits[1])
        return " | ".join(f"{max(each):.1f} s of {len(each)}" if each else "none ended" for each in new)


def _done_twice(audit: Audit) -> int:
    """How many ConfigMaps of the bystander the agents have created, repaired or removed more than once."""
    calls = audit.calls(user_agent=_USER_AGENT, namespace=NAMESPACE, verbs=_WRITES)
    counts = Counter((each.name, each.verb) for each in calls if each.resource == "configmaps" and each.status < 300)
    return len({name for (name, _), count in counts.items() if count > 1 and name.startswith("bystander-")})


def _measure(cluster: Cluster) -> None:
    ends, audit = threading.Event(), cluster.audit()
    leader, other = _agent(cluster), _agent(cluster)
    with contextlib.ExitStack() as stack:
        for agent in (leader, other):
            stack.enter_context(agent)
            if agent is leader:
                agent.wait_until_leading()
        place = Place(cluster, NAMESPACE)
        bystander = Bystander(place, ends, name="bystander")
        workers = [bystander, Attacker(cluster, ends), MergeKeys(place, ends)]
        waits = Waits(bystander)
        stack.callback(ends.set)
        bystander.start()
        time.sleep(_SECONDS_BEFORE)
        print(f"| longest wait before the attack | {waits.longest()} |", flush=True)
        for worker in workers[1:]:
            worker.start()
        time.sleep(_SECONDS_UNDER)
        print(f"| under the attack | {waits.longest()} |", flush=True)
        peaks = list[int]()
        for _ in range(_KILLS):
            peaks.append(resident_peak_bytes(leader))
            leader.kill()
            killed = time.monotonic()
            other.wait_until_leading()
            print(f"| another leads after | {time.monotonic() - killed:.1f} s |", flush=True)
            leader, other = other, stack.enter_context(_agent(cluster))
            time.sleep(_SECONDS_UNDER)
            print(f"| longest wait from then on | {waits.longest()} |", flush=True)
        peaks.append(resident_peak_bytes(leader))
        ends.set()
        for worker in workers:
            worker.join()
        print(f"| objects of the bystander worked on twice | {_done_twice(audit)} |")
        print(f"| memory of a leader at most | {max(peaks) >> 20} MiB |", flush=True)


def main() -> int:
    for sort in decoding.SORTS:
        decoding.secret_data(sort)  # packing takes long
    with Cluster() as cluster:
        install_crd(cluster)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        _measure(cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main())
