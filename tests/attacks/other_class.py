"""ManagedResources of a class that no agent handles, with Secrets that merge keys unfold: what removals of others wait.

    python -m tests.attacks.other_class

The agent is a real process with a control plane of its own. There are five such ManagedResources with Secrets of some
hundred bytes. A bystander meanwhile makes, changes and deletes small ManagedResources; counted is how many of these wait
to be removed.
"""

import base64
import sys
import threading
import time

import brotli

from attacks.bystanders import Bystander, namespace
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import managed_resource, obj
from kit.processes.agent import AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.objects import is_deleting
from kube.resources import SECRETS

_MANAGED_RESOURCES, _KEYS, _MERGES = 5, 1000, 400
_LOOKS = 6
_SECONDS = 6.0
"""Between two looks."""


def _unfolding() -> bytes:
    """Two objects, each with a list of objects that all have the keys of one."""
    keys = ", ".join(f"k{number}: 1" for number in range(_KEYS))
    merged = "- <<: *x\n" * _MERGES
    documents = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\nx: &x {{{keys}}}\ny:\n{merged}" for name in "ab"
    )
    packed: bytes = brotli.compress("\n---\n".join(documents).encode(), quality=5)
    return packed


def _attack(author: Place) -> None:
    packed = _unfolding()
    print(f"\n{_MANAGED_RESOURCES} Secrets of {len(packed)} bytes\n", flush=True)
    for number in range(_MANAGED_RESOURCES):
        name = f"other-{number}"
        author.create(obj(SECRETS, name, data={"o.yaml.br": base64.b64encode(packed).decode()}))
        author.create(managed_resource(name, spec={"class": "no-agent"}))


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        author, others, ends = namespace(cluster, "author"), namespace(cluster, "others"), threading.Event()
        with AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_ready()
            bystander = Bystander(others, ends, name="small")
            bystander.start()
            try:
                time.sleep(_SECONDS)
                print(f"before: {bystander.row()}", flush=True)
                _attack(author)
                print("| Look | Applied after, s (number) | Repaired after, s (number) | Wait to be removed |")
                print("|---|---|---|---|", flush=True)
                for look in range(_LOOKS):
                    time.sleep(_SECONDS)
                    waiting = sum(map(is_deleting, others.list("ManagedResource")))
                    print(f"| {look + 1} | {bystander.row()} | {waiting} |", flush=True)
            finally:
                ends.set()
                bystander.join()
            print(f"\nmemory at most {resident_peak_bytes(agent) >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
