"""ManagedResources that claim what they can't write, and Secrets that look like the history of one.

    python -m tests.attacks.ownership                      # this checkout
    python -m tests.attacks.ownership --project DIRECTORY  # the agent of another one

For each claim: the owner of a RoleBinding takes it out of its Secret, while another ManagedResource lists it, too. The
figure is how long the RoleBinding stays. Then an object is moved as documented, to a ManagedResource on which the old
one depends; two agents with two cluster ids have the same object; and a user who may create Secrets forges a history.
Everything is on a control plane on loopback of this program's own.
"""

import argparse
import base64
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import brotli
import orjson

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, role_binding, secret, user
from kit.processes.agent import PROJECT, AgentProcess, sole_configuration
from kit.world import Place
from kube.objects import Object, annotations
from kube.resources import CLUSTER_ROLES

_GROUP = "resources.gardener.cloud"
_SECONDS = 30.0
"""For which is waited for what may not happen."""
_CLAIMS: dict[str, tuple[Mapping[str, str], str]] = {
    "an account without rights": ({f"{_GROUP}/service-account-name": "stranger"}, ""),
    "a dependency that does not exist": ({f"{_GROUP}/depends-on": "never-there"}, ""),
    "an annotation that is refused": ({f"{_GROUP}/ignore-differences": "- kind: 1"}, ""),
    "a class without an agent": ({}, "that-of-no-agent"),
}
"""By what the claimant has: its annotations and, if it is another one, its class."""


class Attack:
    """A namespace of its own, with agents of classes of their own."""

    def __init__(self, cluster: Cluster, number: int, project: Path) -> None:
        self.cluster, self.name, self.project = cluster, f"attack-{number}", project
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        self.place = Place(cluster, self.name)

    def agent(self, suffix: str = "", **controllers: Any) -> AgentProcess:
        config = sole_configuration(controllers={"resourceClass": f"{self.name}{suffix}", **controllers})
        environment = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(self.project)}
        return AgentProcess(config, kubeconfig=self.cluster.kubeconfig, environment=environment).start()

    def write(self, name: str, *objects: Object, annotated: Mapping[str, str] | None = None, suffix: str = "") -> None:
        self.write_secret(name, *objects)
        self.place.create(managed_resource(name, annotations=annotated, spec={"class": f"{self.name}{suffix}"}))

    def write_secret(self, name: str, *objects: Object) -> None:
        self.place.put(bundle(name, *map(self.place.placed, objects)))

    def seconds_until(self, found: Callable[[], object], *, at_most: float = _SECONDS) -> float | None:
        began = time.monotonic()
        while not found():
            if time.monotonic() - began > at_most:
                return None
            time.sleep(0.02)
        return time.monotonic() - began

    def until_applied(self, name: str) -> None:
        assert self.seconds_until(lambda: self.place.statuses(name)[0] == "True") is not None, name


def claimed(attack: Attack, annotated: Mapping[str, str], resource_class: str) -> float | None:
    binding = role_binding("contractor", user("contractor"), of=CLUSTER_ROLES, to="view", namespace=attack.name)
    with attack.agent():
        attack.write("owner", binding, config_map("c"))
        attack.until_applied("owner")
        attack.write("squatter", binding, annotated=annotated, suffix=resource_class and f"-{resource_class}")
        time.sleep(2.0)
        attack.write_secret("owner", config_map("c"))
        return attack.seconds_until(lambda: attack.place.find("RoleBinding", "contractor") is None)


def moved(attack: Attack) -> float | None:
    """Seconds until the new ManagedResource is applied."""
    with attack.agent("-1"), attack.agent("-2"):
        attack.write("new", config_map("base"), suffix="-2")
        attack.write("old", config_map("moving"), annotated={f"{_GROUP}/depends-on": "new"}, suffix="-1")
        attack.until_applied("old")
        attack.write_secret("new", config_map("base"), config_map("moving"))
        attack.seconds_until(lambda: "is held by" in str(attack.place.condition("new", "ResourcesApplied")))
        attack.write_secret("old")
        return attack.seconds_until(lambda: attack.place.statuses("new")[0] == "True")


def contested(attack: Attack) -> str:
    """Who has the object in the end, and what the two report."""
    with attack.agent("-1", clusterID="one"), attack.agent("-2", clusterID="two"):
        attack.write("first", config_map("c", {"of": "first"}), suffix="-1")
        attack.until_applied("first")
        attack.write("second", config_map("c", {"of": "second"}), suffix="-2")
        time.sleep(10.0)
        has_it = annotations(attack.place.get("ConfigMap", "c")).get(f"{_GROUP}/origin", "").rpartition("/")[2]
        reported = [f"{name} {attack.place.statuses(name)[0]}" for name in ("first", "second")]
        return f"{has_it} has it; {', '.join(reported)}"


def forged(attack: Attack) -> str:
    """What is left of a history of three, and what going back leads to."""
    with attack.agent(managedResource={"historyLimit": 3}):
        attack.write("mr", config_map("c", {"of": "0"}))
        attack.seconds_until(lambda: attack.place.find("Secret", "mr-history-1"))
        owner = attack.place.get("ManagedResource", "mr")["metadata"]["uid"]
        evil = {"objects.yaml": orjson.dumps(attack.place.placed(config_map("evil"))).decode()}
        item = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mr"}, "stringData": evil}
        packed = brotli.compress(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}))
        for number in (2, 800, 801):
            attack.place.create(_forgery(number, packed, owner))
        for version in "12":
            attack.write_secret("mr", config_map("c", {"of": version}))
            time.sleep(3.0)
        kept = [each for each in attack.place.list("Secret") if each["metadata"]["name"].startswith("mr-history-")]
        genuine = [each for each in kept if each["data"].get("secrets.json.br") != base64.b64encode(packed).decode()]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": tempfile.gettempdir(),
            "PYTHONSAFEPATH": "1",
            "PYTHONPATH": str(attack.project),
        }
        command = [sys.executable, "-m", "kubectl.mr", "rollback", "mr", "-n", attack.name, "--timeout", "10s"]
        environment["KUBECONFIG"] = str(attack.cluster.kubeconfig)
        subprocess.run(command, env=environment, capture_output=True, check=False)
        applied = "applied" if attack.place.find("ConfigMap", "evil") else "not applied"
        return f"{len(genuine)} genuine; what was forged is {applied}"


def _forgery(number: int, packed: bytes, owner: str) -> Object:
    reference = {"apiVersion": f"{_GROUP}/v1alpha1", "kind": "ManagedResource", "name": "mr", "uid": owner}
    notes = {f"{_GROUP}/revision": str(number), f"{_GROUP}/revision-digest": f"d{number}"}
    return secret(
        f"mr-history-{number}",
        {"secrets.json.br": packed},
        type=f"{_GROUP}/managed-resource-revision",
        labels={f"{_GROUP}/history-of": "mr"},
        annotations=notes,
        ownerReferences=[reference],
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks.ownership", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--project", type=Path, default=PROJECT, help="the checkout whose agent is attacked")
    options = parser.parse_args(arguments)
    with Cluster() as cluster:
        install_crd(cluster)
        number = 0

        def attack() -> Attack:
            nonlocal number
            number += 1
            return Attack(cluster, number, options.project)

        def reported(seconds: float | None) -> str:
            return f"{seconds:.1f} s" if seconds is not None else f"not within {_SECONDS:.0f} s"

        print("| Attack | Outcome |\n|---|---|", flush=True)
        for what, (annotated, resource_class) in _CLAIMS.items():
            seconds = claimed(attack(), annotated, resource_class)
            print(f"| claim with {what}: removed after | {reported(seconds)} |", flush=True)
        print(f"| move to a dependency of another class: applied after | {reported(moved(attack()))} |", flush=True)
        print(f"| two cluster ids | {contested(attack())} |", flush=True)
        print(f"| forged history | {forged(attack())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
