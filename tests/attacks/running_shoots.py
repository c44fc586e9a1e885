"""Shoots of a devcluster that runs, as their owner has them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import is_current, last_operation
from kit.eventually import eventually
from kit.garden import CONFIRMED
from kube.errors import NotFound
from kube.objects import Object, annotations

_NAMESPACE = "garden-dev"
_PATIENCE_SECONDS = 300.0


class RunningGarden:
    """Args: name: of the devcluster, with a seed `meadow`."""

    def __init__(self, name: str) -> None:
        garden, seed = Cluster.running(name), Cluster.running(f"{name}.meadow")
        assert garden is not None, f"there is no devcluster {name!r}"
        assert seed is not None, f"there is no devcluster '{name}.meadow'"
        self.api, self.kubeconfig, self.seed = garden.api, garden.kubeconfig, seed

    def shoot(self, name: str) -> Object:
        found: Object = self.api.get(SHOOTS.path(namespace=_NAMESPACE, name=name))
        return found

    def create(self, name: str) -> None:
        self.ask(name)
        self.until_created(name)

    def ask(self, name: str) -> None:
        """Have one created."""
        spec = {"cloudProfile": {"name": "local"}, "region": "local", "provider": {"type": "local"}}
        meta = {"name": name, "namespace": _NAMESPACE}
        self.api.create(SHOOTS.path(namespace=_NAMESPACE), {**SHOOTS.type_meta, "metadata": meta, "spec": spec})

    def until_created(self, name: str) -> None:
        self._until(lambda: last_operation(self.shoot(name)).get("state") == "Succeeded", name)

    def reconcile(self, name: str) -> None:
        body = {"metadata": {"annotations": {keys.OPERATION: "reconcile"}}}
        self.api.patch(SHOOTS.path(namespace=_NAMESPACE, name=name), body)
        self._until(lambda: self._is_reconciled(name), name)

    def _is_reconciled(self, name: str) -> bool:
        shoot = self.shoot(name)
        is_done = is_current(shoot) and last_operation(shoot).get("state") == "Succeeded"
        return is_done and keys.OPERATION not in annotations(shoot)

    def delete(self, name: str) -> None:
        path = SHOOTS.path(namespace=_NAMESPACE, name=name)
        self.api.patch(path, CONFIRMED)
        self.api.delete(path)
        self._until(lambda: self._is_gone(name), name)

    def _is_gone(self, name: str) -> bool:
        try:
            self.shoot(name)
        except NotFound:
            return True
        return False

    def kubectl(self, *arguments: str) -> bytes:
        """With the plugins of this environment."""
        paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ("kubectl", *arguments, f"--namespace={_NAMESPACE}"),
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": paths},
            check=True,
            stdout=subprocess.PIPE,
            timeout=_PATIENCE_SECONDS,
        ).stdout

    def _until(self, done: Callable[[], bool], name: str) -> None:
        eventually(done, f"{name} to be as requested", seconds=_PATIENCE_SECONDS)
