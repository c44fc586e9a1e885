"""One Service that requests hundreds of thousands of network policies, most of them in namespaces of others.

    python -m tests.attacks.policies

Its annotations name 17,000 ports, and all namespaces. An agent runs on a control plane on loopback of this program's
own; in the namespace of another client another Service is made at the same time, and a ManagedResource.
"""

import json
import sys
import threading
import time
from typing import Any

from devcluster.cluster import Cluster
from gardener import keys
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.objects import Object
from kube.resources import NETWORK_POLICIES, SERVICES

_LARGEST_ANNOTATIONS = 250_000
_OTHERS = 10
_SECONDS = 60.0
_WATCHED_SECONDS = 20.0


def flood() -> Object:
    annotations = {keys.NAMESPACE_SELECTORS: "[{}]"}
    number = 0
    while sum(map(len, annotations)) + sum(map(len, annotations.values())) < _LARGEST_ANNOTATIONS:
        ports = [{"port": 1000 + (number * 200 + port) % 60_000} for port in range(200)]
        name = f"{keys.FROM_PREFIX}a{number}{keys.FROM_SUFFIX}"
        annotations[name] = json.dumps(ports, separators=(",", ":"))
        number += 1
    return obj(SERVICES, "flood", annotations=annotations, spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})


def _count(cluster: Cluster, namespace: str = "") -> int:
    place = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/{NETWORK_POLICIES.api_version}{place}/{NETWORK_POLICIES.plural}?limit=1"
    found = cluster.api.get(path)
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        for name in ("attacker", *(f"other-{number}" for number in range(_OTHERS))):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        attacker, victim = Place(cluster, "attacker"), Place(cluster, "other-0")
        usual: dict[str, Any] = {"sourceClientConnection": {}, "targetClientConnection": {}}
        config = sole_configuration(controllers={"networkPolicy": {"enabled": True}}, **usual)
        slowest, ended = [0.0], threading.Event()
        with AgentProcess(config, kubeconfig=cluster.kubeconfig, target_kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_ready()

            def probe() -> None:
                while not ended.wait(0.05):
                    began = time.monotonic()
                    agent.probe("/healthz")
                    slowest[0] = max(slowest[0], time.monotonic() - began)

            probing = threading.Thread(target=probe)
            probing.start()
            attacker.create(flood())
            time.sleep(0.5)
            began = time.monotonic()
            victim.create(obj(SERVICES, "innocent", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}))
            victim.create(bundle("innocent", config_map("other-0/harmless")))
            victim.create(managed_resource("innocent"))

            def is_served() -> bool:
                policy = victim.find("NetworkPolicy", "ingress-to-innocent-tcp-80")
                return policy is not None and victim.statuses("innocent")[0] == "True"

            eventually(is_served, "others to be served", seconds=_SECONDS)
            served = time.monotonic() - began
            time.sleep(_WATCHED_SECONDS)
            ended.set()
            probing.join()
            print(
                "| others served after | slowest /healthz | peak of memory | policies | of these in a foreign namespace |\n"
                "|---|---|---|---|---|\n"
                f"| {served:.1f} s | {slowest[0]:.2f} s | {resident_peak_bytes(agent) >> 20} MiB | {_count(cluster)} |"
                f" {_count(cluster, 'other-1')} |"
            )
            agent.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
