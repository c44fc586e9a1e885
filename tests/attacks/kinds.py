"""Kinds that are not served, or that do not answer: what is left of their objects, and what others wait for.

    python -m tests.attacks.kinds

The agent is a real process with a control plane of its own. All versions of a CustomResourceDefinition are switched off
while a ManagedResource with an object of it is deleted. Then ten ManagedResources have twenty objects each of a kind
whose conversion webhook takes connections and never answers.
"""

import sys
import time

from attacks.silent import client_config, silent
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.kinds import custom_resource, definition, definition_path, serve
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import AgentProcess, configuration
from kit.world import Place, find_at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS

_NAMESPACE = "kinds"
_MANAGED_RESOURCES, _OBJECTS = 10, 20
_LOOKS = 3
_PATIENCE_SECONDS = 120.0


def unserved(cluster: Cluster, place: Place) -> None:
    things = custom_resource("switched.example.com", "Thing")
    serve(cluster, things)
    thing = obj(things, "thing", namespace=_NAMESPACE)
    place.create(bundle("unserved", thing))
    place.create(managed_resource("unserved"))
    _until_applied(place, "unserved")
    (version,) = definition(things)["spec"]["versions"]
    for is_served in False, True:
        if not is_served:
            place.delete("ManagedResource", "unserved")
        cluster.api.patch(definition_path(things), {"spec": {"versions": [{**version, "served": is_served}]}})
        time.sleep(10)
        there = place.find("ManagedResource", "unserved") is not None
        path = things.path(namespace=_NAMESPACE, name="thing")
        left = f", object {bool(find_at(cluster, path))}" if is_served else ""
        print(f"| served {is_served} | ManagedResource {there}{left} |", flush=True)


def hanging(cluster: Cluster, place: Place, port: int) -> None:
    stored, requested = (custom_resource("hanging.example.com", "Thing", version=each) for each in ("v1", "v1beta1"))
    crd = definition(stored)
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": requested.version, "storage": False})
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client_config(port)}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), crd)
    time.sleep(3)
    print(f"| before | {_innocent(place, 'before'):.1f} |", flush=True)
    for number in range(_MANAGED_RESOURCES):
        things = [obj(requested, f"t{number}-{each}", namespace=_NAMESPACE) for each in range(_OBJECTS)]
        place.create(bundle(f"hangs{number}", *things))
        place.create(managed_resource(f"hangs{number}"))
    for look in range(_LOOKS):
        print(f"| look {look + 1} | {_innocent(place, f'look{look}'):.1f} |", flush=True)
        time.sleep(4)


def _innocent(place: Place, name: str) -> float:
    place.create(bundle(name, config_map(f"{_NAMESPACE}/{name}")))
    began = time.monotonic()
    place.create(managed_resource(name))
    _until_applied(place, name)
    return time.monotonic() - began


def _until_applied(place: Place, name: str) -> None:
    eventually(lambda: place.statuses(name)[0] == "True", f"{name} to be applied", seconds=_PATIENCE_SECONDS)


def main() -> int:
    with Cluster() as cluster, silent() as port:
        install_crd(cluster)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        place = Place(cluster, _NAMESPACE)
        with AgentProcess(configuration(_NAMESPACE), kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_leading()
            print("| Versions | Is there |\n|---|---|", flush=True)
            unserved(cluster, place)
            print("\n| A conversion webhook that hangs | Another one applied after, s |\n|---|---|", flush=True)
            hanging(cluster, place, port)
            print(f"\nmemory {agent.resident_bytes >> 20} MiB, /readyz {agent.probe('/readyz')[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
