"""Objects that a writer of the target makes or marks in advance, so that the agent leaves them alone.

    python -m tests.attacks.foreign_origin

The agent is a real process with a control plane of its own. A NetworkPolicy that lets everything in is there before
its ManagedResource is, with the origin of another one. Another one, which the agent has created, gets such an origin
three times. A RoleBinding gets one all the time while it is taken out of its ManagedResource. The figures are whether the
objects are as they should be after some seconds; else, what the ManagedResource reports.
"""

import contextlib
import sys
import threading
import time

from attacks.bystanders import namespace
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, role_binding, user
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place
from kube.errors import KubeError
from kube.objects import Object
from kube.resources import CLUSTER_ROLES

_ORIGIN = {"resources.gardener.cloud/origin": "other:x/y"}
_SECONDS = 15.0
_AT = "origins"


def _policy(name: str, *, is_open: bool = False) -> Object:
    ingress: Object = {"ingress": [{}]} if is_open else {}
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], **ingress}
    return {**head, "metadata": {"name": name, "namespace": _AT}, "spec": spec}


def _give(place: Place, name: str, *objects: Object) -> None:
    place.create(bundle(name, *objects))
    place.create(managed_resource(name))
    eventually(lambda: place.statuses(name)[0] != "Unknown", f"{name} to be looked at", seconds=60)


def _open(place: Place, name: str) -> None:
    spec = _policy(name, is_open=True)["spec"]
    with contextlib.suppress(KubeError):
        place.patch("NetworkPolicy", name, {"metadata": {"annotations": _ORIGIN}, "spec": spec})


def _outcome(place: Place, name: str, *, is_right: bool) -> str:
    if is_right:
        return "as it should be"
    reported = [place.condition(name, each).get("message") or "" for each in ("ResourcesApplied", "ResourcesHealthy")]
    return f"NOT; said: {'; '.join(reported)[:300]}"


def _is_closed(place: Place, name: str) -> bool:
    return not ((place.find("NetworkPolicy", name) or {}).get("spec") or {}).get("ingress")


def in_advance(place: Place) -> str:
    early = _policy("early", is_open=True)
    place.create({**early, "metadata": {**early["metadata"], "annotations": _ORIGIN}})
    _give(place, "early", _policy("early"))
    _open(place, "early")
    time.sleep(_SECONDS)
    return _outcome(place, "early", is_right=_is_closed(place, "early"))


def afterwards(place: Place) -> str:
    _give(place, "late", _policy("late"))
    for _ in range(3):
        _open(place, "late")
        time.sleep(2)
    return _outcome(place, "late", is_right=_is_closed(place, "late"))


def revoked(place: Place) -> str:
    binding = role_binding("contractor", user("contractor"), of=CLUSTER_ROLES, to="view", namespace=_AT)
    _give(place, "revoked", binding, config_map(f"{_AT}/rest"))
    ends = threading.Event()

    def mark() -> None:
        own = Place(place.cluster, _AT)
        while not ends.wait(0.05):
            with contextlib.suppress(KubeError):
                own.patch("RoleBinding", "contractor", {"metadata": {"annotations": _ORIGIN}})

    marking = threading.Thread(target=mark)
    marking.start()
    time.sleep(1)
    place.put(bundle("revoked", config_map(f"{_AT}/rest")))
    time.sleep(_SECONDS)
    ends.set()
    marking.join()
    return _outcome(place, "revoked", is_right=place.find("RoleBinding", "contractor") is None)


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        place = namespace(cluster, _AT)
        with AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_ready()
            print("| An object with a foreign origin | Outcome |\n|---|---|", flush=True)
            print(f"| NetworkPolicy, in advance | {in_advance(place)} |", flush=True)
            print(f"| NetworkPolicy, three times afterwards | {afterwards(place)} |", flush=True)
            print(f"| RoleBinding, while it is taken out | {revoked(place)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
