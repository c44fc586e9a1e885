"""How changes of ControllerDeployments are noticed.

The controller manager writes the version of a ControllerDeployment into its installations, which brings a pass. Where
there is no version, or no ControllerDeployment yet, a watch does: one for each name, since a gardenlet may see only
those that its Seed uses. It brings a pass when the ControllerDeployment differs from what the last pass has read.
"""

from typing import Any

from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from kube.objects import Key, Object, key, text
from kube.packing import digest
from kube.paths import at
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue_users


def content(deployment: Object) -> bytes:
    """What is kept of a ControllerDeployment: a digest of all that says how to install; charts are large."""
    return digest(deployment.get("helm"))


def name_of(installation: Object) -> str:
    """Of its ControllerDeployment; empty: it has none."""
    return text(at(installation, "spec", "deploymentRef", "name"))


def _has_version(installation: Object) -> bool:
    return bool(at(installation, "spec", "deploymentRef", "resourceVersion"))


class Deployments:
    """Args: installations: whose ControllerDeployments are followed."""

    def __init__(self, loop: ControlLoop, caches: Caches, installations: Store[Object]) -> None:
        self._loop = loop
        self._caches = caches
        self._installations = installations
        self._stores: dict[str, Store[bytes]] = {}
        self._read: dict[str, bytes | None] = {}

    def follow(self, name: str, read: Object | None) -> None:
        """From now on. Args: read: the ControllerDeployment, as a pass has read it; None: it does not exist."""
        if read is not None and all(_has_version(each) for each in self._using(name)):
            self._forget(name)
            return
        self._read[name] = None if read is None else content(read)
        if name not in self._stores:
            view = View(CONTROLLER_DEPLOYMENTS, content, field_selector=f"metadata.name={name}")
            self._stores[name] = self._loop.watch(self._caches, view, enqueue_users(self._affected, when=self._is_news))

    def forget_unused(self) -> None:
        used = {name_of(each) for each in self._installations.values()}
        for name in self._stores.keys() - used:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._stores:
            self._loop.unwatch(self._stores.pop(name))
            del self._read[name]

    def _using(self, name: str) -> list[Object]:
        return [each for each in self._installations.values() if name_of(each) == name]

    def _is_news(self, change: Change[Any]) -> bool:
        return change.new is not None and change.new != self._read.get(change.key.name)

    def _affected(self, deployment: Key) -> list[Key]:
        return [key(each) for each in self._using(deployment.name)]
