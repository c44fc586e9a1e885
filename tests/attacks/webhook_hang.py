"""An admission webhook for namespaces of the target takes connections and never answers.

    python -m tests.attacks.webhook_hang [one | many | authors]

The agent is a real process with a control plane of its own. `one`: ten ManagedResources have twenty objects each in one
namespace for which the webhook is called. `many`: thirty ManagedResources have three objects each, of three kinds, in as
many such namespaces. `authors`: each of these ManagedResources is in a namespace of its own. Meanwhile a bystander makes
small ManagedResources with an object elsewhere, and changes these objects.
"""

import sys
import threading
import time
from collections.abc import Callable

from attacks.bystanders import Bystander, namespace
from attacks.silent import admission, silent
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place

_HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_KINDS = ("configmaps", "secrets", "serviceaccounts")
_LABEL = "hangs"
_QUIET_SECONDS, _ATTACKED_SECONDS, _AFTER_SECONDS = 5.0, 45.0, 15.0
_MANY, _FEW, _OF_EACH = 30, 10, 20


def one(cluster: Cluster) -> None:
    target, author = namespace(cluster, "one-0", **{_LABEL: "true"}), namespace(cluster, "one-author")
    for number in range(_FEW):
        objects = [config_map(f"{target.namespace}/m{number}-{each}") for each in range(_OF_EACH)]
        author.create(bundle(f"hangs{number}", *objects))
        author.create(managed_resource(f"hangs{number}"))


def many(cluster: Cluster) -> None:
    author = namespace(cluster, "many-author")
    for number in range(_MANY):
        _three(author, namespace(cluster, f"many-{number}", **{_LABEL: "true"}), f"hangs{number}")


def authors(cluster: Cluster) -> None:
    for number in range(_MANY):
        author = namespace(cluster, f"authors-of-{number}")
        _three(author, namespace(cluster, f"authors-{number}", **{_LABEL: "true"}), "hangs")


def _three(author: Place, target: Place, name: str) -> None:
    at = target.namespace
    kinds = config_map(f"{at}/c"), obj("Secret", "s", namespace=at), obj("ServiceAccount", "a", namespace=at)
    author.create(bundle(name, *kinds))
    author.create(managed_resource(name))


ATTACKS: dict[str, Callable[[Cluster], None]] = {"one": one, "many": many, "authors": authors}


def attack(cluster: Cluster, name: str, port: int) -> None:
    place = namespace(cluster, f"{name}-bystander")
    with AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent:
        agent.wait_until_ready()
        _watched(place, f"{name}, before", lambda: time.sleep(_QUIET_SECONDS))
        cluster.api.create(_HOOKS, admission(_LABEL, port, _KINDS, label=_LABEL))
        try:
            time.sleep(2)  # until the API server calls it

            def attacked() -> None:
                ATTACKS[name](cluster)
                time.sleep(_ATTACKED_SECONDS)

            _watched(place, name, attacked)
        finally:
            cluster.api.delete(f"{_HOOKS}/{_LABEL}")
        _watched(place, f"{name}, afterwards", lambda: time.sleep(_AFTER_SECONDS))


def _watched(place: Place, name: str, during: Callable[[], None]) -> None:
    """Print what a bystander waits for."""
    ends = threading.Event()
    bystander = Bystander(place, ends, name=name.partition(" ")[2] or "attacked")
    bystander.start()
    try:
        during()
    finally:
        ends.set()
        bystander.join()
    print(f"| {name} | {bystander.row()} |", flush=True)


def main(names: list[str]) -> int:
    with Cluster() as cluster, silent() as port:
        install_crd(cluster)
        print(
            "| A webhook hangs for | Applied after, s (number) | Repaired after, s (number) |\n|---|---|---|",
            flush=True,
        )
        for name in names or ATTACKS:
            attack(cluster, name, port)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
