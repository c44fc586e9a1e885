"""Large objects that no program needs, and the cost of reading them.

    python -m tests.attacks.large_objects [invalidator | start]

The agent is a real process with a control plane of its own. `invalidator`: 60 Secrets with tokens that a Pod uses,
beside 200 Pods of 100 kB; the figure is the CPU of the idle agent. `start`: 150 ConfigMaps of 1 MB with the label of
managed objects; the figure is the time from the start of the agent until a ManagedResource is applied.
"""

import sys
import time

from attacks.webhooks import cpu_seconds
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj, pod
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place, find_at
from kube.objects import text
from kube.paths import at
from kube.resources import CONFIG_MAPS

_TOKENS, _PODS, _MAPS = 60, 200, 150
_POD_BYTES, _MAP_BYTES = 100_000, 1_000_000
_QUIET_SECONDS, _LOOKS = 30.0, 4


def invalidator(cluster: Cluster) -> None:
    place = _place(cluster, "invalidator")
    place.create(obj("ServiceAccount", "sa", automountServiceAccountToken=False))
    for number in range(_TOKENS):
        of = {"kubernetes.io/service-account.name": "sa"}
        place.create(obj("Secret", f"t{number}", annotations=of, type="kubernetes.io/service-account-token"))
    volumes = [{"name": f"v{number}", "secret": {"secretName": f"t{number}"}} for number in range(_TOKENS)]
    for number in range(_PODS):
        used = volumes if number == _PODS - 1 else []
        place.create(pod(f"p{number}", annotations={"large": "x" * _POD_BYTES}, schedulerName="none", volumes=used))
    enabled = {"tokenInvalidator": {"enabled": True}}
    config = sole_configuration(controllers=enabled, webhooks=enabled)
    with AgentProcess(config, kubeconfig=cluster.kubeconfig).start() as agent:
        agent.wait_until_ready()
        time.sleep(_QUIET_SECONDS)
        for _ in range(_LOOKS):
            began, requests = cpu_seconds(agent.pid), agent.metric("rest_client_requests_total") or 0
            time.sleep(_QUIET_SECONDS)
            cores = (cpu_seconds(agent.pid) - began) / _QUIET_SECONDS
            calls = (agent.metric("rest_client_requests_total") or 0) - requests
            print(f"| cores {cores:.3f} | requests {calls:.0f} | memory {agent.resident_bytes >> 20} MiB |", flush=True)


def start(cluster: Cluster) -> None:
    place, other = _place(cluster, "start"), _place(cluster, "other")
    place.create(bundle("small", config_map("start/small")))
    place.create(managed_resource("small"))
    print(f"| without | {_applied_after(cluster, place):.1f} s |", flush=True)
    for number in range(_MAPS):
        labels = {"resources.gardener.cloud/managed-by": "gardener"}
        other.create(obj(CONFIG_MAPS, f"m{number}", labels=labels, data={"k": "x" * _MAP_BYTES}))
    for _ in range(2):
        print(f"| with {_MAPS} ConfigMaps | {_applied_after(cluster, place):.1f} s |", flush=True)


def _applied_after(cluster: Cluster, place: Place) -> float:
    path = "/api/v1/namespaces/start/configmaps/small"
    before = time.time()
    place.patch("Secret", "small", {"data": bundle("small", config_map("start/small", {"at": str(before)}))["data"]})
    with AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent:
        began = time.monotonic()
        agent.wait_for(lambda: _found(cluster, path) == str(before), what="it to be applied")
        return time.monotonic() - began


def _found(cluster: Cluster, path: str) -> str:
    return text(at(find_at(cluster, path) or {}, "data", "at"))


def _place(cluster: Cluster, name: str) -> Place:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return Place(cluster, name)


ATTACKS = {"invalidator": invalidator, "start": start}


def main(names: list[str]) -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        for name in names or ATTACKS:
            print(f"{name}:", flush=True)
            ATTACKS[name](cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
