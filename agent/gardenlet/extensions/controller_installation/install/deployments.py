"""Detection of changed ControllerDeployments.

The controller manager writes the version of a ControllerDeployment into its installations, which triggers a pass.
Without a version, or without the ControllerDeployment, a watch does: one per name, since a gardenlet may read only
those that its Seed uses. It triggers a pass if the ControllerDeployment differs from the one that the last pass read.
"""

from typing import Any

from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from kube.objects import Key, Object, key, text
from kube.packing import digest
from kube.paths import at
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue_users


def content(deployment: Object) -> bytes:
    """Digest of the installation data of a ControllerDeployment, kept instead of the large chart."""
    return digest([deployment.get("helm"), is_injected(deployment)])


def is_injected(deployment: Object) -> bool:
    """Whether programs get a kubeconfig for the garden; releases before the field always inject it."""
    return deployment.get("injectGardenKubeconfig") is not False


def name_of(installation: Object) -> str:
    """Name of the installation's ControllerDeployment; empty if it has none."""
    return text(at(installation, "spec", "deploymentRef", "name"))


def _has_version(installation: Object) -> bool:
    return bool(at(installation, "spec", "deploymentRef", "resourceVersion"))


class Deployments:
    """Watches of ControllerDeployments.

    Args:
        installations: those whose ControllerDeployments are watched.
    """

    def __init__(self, loop: ControlLoop, caches: Caches, installations: Store[Object]) -> None:
        self._loop = loop
        self._caches = caches
        self._installations = installations
        self._stores: dict[str, Store[bytes]] = {}
        self._read: dict[str, bytes | None] = {}

    def follow(self, name: str, read: Object | None) -> None:
        """Watch a ControllerDeployment if necessary; `read` is what a pass has read, None if it is missing."""
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
