"""An aggregated API server whose responses have a `Date` a year ahead, to make others' objects look old.

    python -m tests.attacks.false_date

The agent is a real process with a control plane of its own; its garbage collector deletes objects that nothing refers to
once they are some minutes old. A ManagedResource has an object of the kind that the aggregated API server serves, so the
agent queries it again and again. The figures are how many of five young ConfigMaps of another namespace are there after
two of the garbage collector's rounds.
"""

import sys
import time

from attacks.aggregated import empty_list, things
from attacks.bystanders import namespace
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, managed_resource, obj
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place

_GROUP = "dates.example.com"
_YEAR = 365 * 24 * 3600.0
_YOUNG, _SECONDS = 5, 35.0
_GARBAGE = {"resources.gardener.cloud/garbage-collectable-reference": "true"}


def _left(victim: Place, name: str) -> int:
    """Count deleted young objects, after some rounds."""
    for number in range(_YOUNG):
        victim.create(obj("ConfigMap", f"{name}-{number}", labels=_GARBAGE, immutable=True, data={"k": "v"}))
    time.sleep(_SECONDS)
    return sum(victim.find("ConfigMap", f"{name}-{number}") is not None for number in range(_YOUNG))


def main() -> int:
    config = sole_configuration(controllers={"garbageCollector": {"enabled": True, "syncPeriod": "15s"}})
    with Cluster() as cluster:
        install_crd(cluster)
        place, victim = namespace(cluster, "attacker"), namespace(cluster, "victim")
        with (
            things(cluster, place, _GROUP, lambda _: empty_list(_GROUP), ahead=_YEAR),
            AgentProcess(config, kubeconfig=cluster.kubeconfig).start() as agent,
        ):
            agent.wait_until_ready()
            print("| Young objects | Left |\n|---|---|", flush=True)
            print(f"| before | {_left(victim, 'before')} of {_YOUNG} |", flush=True)
            thing = {"apiVersion": f"{_GROUP}/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "attacker"}}
            place.create(bundle("dated", thing))
            place.create(managed_resource("dated"))
            print(f"| with a date a year ahead | {_left(victim, 'attacked')} of {_YOUNG} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
