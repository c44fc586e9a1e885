"""A Shoot that is a cluster, between its garden and its seed.

meadow = Meadow(garden, seed)
meadow.create()
shoot = meadow.wait("Create")
"""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.__main__ import main
from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.processes import running_in
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.garden import SHOOTS
from gardener.garden.rotations import ON_NODES
from kit.eventually import eventually
from kube.errors import NotFound
from kube.objects import Object, spec
from kube.resources import DEPLOYMENTS, SECRETS
from kube.runtime.kubeconfig import parse_kubeconfig
from localprocesses.versions import NEWEST

SEED, NAMESPACE, NAME, TECHNICAL_ID = "meadow", "garden-dev", "rose", "shoot--dev--rose"
SHOOT: Object = {
    **SHOOTS.type_meta,
    "metadata": {"name": NAME, "namespace": NAMESPACE},
    "spec": {
        "cloudProfile": {"name": "local"},
        "region": "local",
        "purpose": "evaluation",
        "kubernetes": {"version": NEWEST},
        "networking": {"services": "10.4.0.0/16"},
        "provider": {"type": "local"},
        # Far from now: maintenance would change it in between.
        "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
    },
}
POOL: Object = {
    "name": "pool",
    "minimum": 2,
    "maximum": 3,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
    "zones": ["a"],
}
WITH_POOL: Object = {
    **SHOOT,
    "spec": {
        **SHOOT["spec"],
        "credentialsBindingName": "local",
        "networking": {"type": "local", "services": "10.4.0.0/16", "pods": "10.3.0.0/16", "nodes": "10.250.0.0/16"},
        "provider": {"type": "local", "workers": [POOL]},
    },
}
PATH = SHOOTS.path(namespace=NAMESPACE, name=NAME)
SECONDS = 180.0


@contextmanager
def garden_with_seed(prefix: str) -> Iterator[tuple[Cluster, Cluster]]:
    """A garden, and a seed in which Shoots become clusters, as `devcluster up` makes them."""
    name = f"{prefix}-{os.getpid()}"
    with Cluster(name=name) as garden:
        assert main(["up", "--garden", "--seed", SEED, "--shoots", "--name", name]) == 0
        seed = Cluster.running(f"{name}.{SEED}")
        assert seed is not None
        yield garden, seed


class Meadow:
    def __init__(self, garden: Cluster, seed: Cluster) -> None:
        self.garden, self.seed = garden, seed

    def create(self, shoot: Object = SHOOT) -> Object:
        return self.garden.api.create(SHOOTS.path(namespace=NAMESPACE), shoot)

    def shoot(self) -> Object:
        return self.garden.api.get(PATH)

    def wait(self, *kinds: str, on: str = "", seconds: float = SECONDS) -> Object:
        """Until an operation of one of these types has succeeded with what is requested now.

        Args: on: the responsible Seed; empty: any.
        """

        def done() -> Object | None:
            shoot = self.shoot()
            status = shoot.get("status") or {}
            last = status.get("lastOperation") or {}
            is_current = status.get("observedGeneration") == shoot["metadata"]["generation"]
            has_succeeded = last.get("type") in kinds and last.get("state") == "Succeeded"
            is_there = status.get("seedName") == (on or status.get("seedName"))
            return shoot if is_current and is_there and has_succeeded else None

        return eventually(done, f"{' or '.join(kinds)} of the Shoot", seconds=seconds, state=self.explain)

    def change(self, patch: Object) -> None:
        self.garden.api.patch(PATH, patch)

    def ask(self, operation: str) -> None:
        self.change({"metadata": {"annotations": {keys.OPERATION: operation}}})

    def rotated(self, phase: str, *what: str) -> Object:
        """The rotations in the status, once these are in a phase."""

        def rotations() -> Object | None:
            shoot = self.shoot()
            found: Object = shoot["status"].get("credentials", {}).get("rotation", {})
            is_done = all(found.get(each, {}).get("phase") == phase for each in what or ON_NODES)
            return found if is_done and shoot["status"]["lastOperation"]["state"] == "Succeeded" else None

        found = eventually(rotations, f"the rotation to be {phase}", seconds=SECONDS, state=self.explain)
        assert keys.OPERATION not in self.shoot()["metadata"].get("annotations", {})
        return found

    def rotate(self, step: str, phase: str, *what: str) -> Object:
        """All credentials. Returns as `rotated`."""
        self.ask(f"rotate-credentials-{step}")
        return self.rotated(phase, *what)

    def explain(self) -> str:
        log = self.seed.state / "logs" / "gardenlet.log"
        return f"{self.shoot().get('status')}\n{log.read_text()[-3000:]}"

    def cluster(self) -> Api:
        """The Shoot's own API server, with the credentials of the gardenlet."""
        access = self.access()
        assert access is not None
        server, ca, token = access
        return Api(url=server, ca=ca, token=token)

    def access(self) -> tuple[str, str, str] | None:
        """URL, authority and token for it; None: there are none yet."""
        try:
            secret = self.seed.api.get(SECRETS.path(namespace=TECHNICAL_ID, name="gardener"))
        except NotFound:
            return None
        config = parse_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]), origin="the Shoot's")
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cluster["server"], ca, user["token"]

    def replicas(self) -> dict[str, int]:
        """Of the control plane."""
        found = {}
        for resource in (DEPLOYMENTS, ETCDS):
            for each in self.seed.api.get(resource.path(namespace=TECHNICAL_ID))["items"]:
                found[each["metadata"]["name"]] = spec(each)["replicas"]
        return found

    def processes(self) -> list[str]:
        """Of the Shoot: what was called."""
        place = self.seed.state / "provider" / "shoots"
        return [command[0] for command in running_in(place).values()]

    def wait_until_nothing_runs(self) -> None:
        """Processes end after the objects that ask for them, as pods do."""
        eventually(lambda: not self.processes(), "the processes to end", seconds=SECONDS, state=self.processes)

    def secrets(self) -> dict[str, str]:
        """Uids of what the secrets manager has made, by name."""
        path = f"{SECRETS.path(namespace=TECHNICAL_ID)}?labelSelector=managed-by%3Dsecrets-manager"
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.seed.api.get(path)["items"]}
