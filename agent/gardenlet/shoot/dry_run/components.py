"""Records the objects of components without writing them."""

from collections.abc import Iterable

from agent.gardenlet.common.component_objects import ComponentObjects
from kube.objects import Key, Object, key
from kube.resources import Resource


class RecordedComponents(ComponentObjects):
    """Recorder of components' objects.

    Args:
        real: the writer of this process.

    Attributes:
        desired: objects by owner, as in their annotation.
    """

    def __init__(self, real: ComponentObjects) -> None:
        self._real = real
        self.desired: dict[str, list[Object]] = {}

    @property
    def kinds(self) -> set[Resource]:
        return self._real.kinds

    def owner(self, component: str) -> str:
        return self._real.owner(component)

    def find(self, resource: Resource, name: Key) -> Object | None:
        """Return an object that would be deployed."""
        for each in (each for objects in self.desired.values() for each in objects):
            if each["kind"] == resource.kind and each["apiVersion"] == resource.api_version and key(each) == name:
                return each
        return None

    async def close(self) -> None:
        return

    async def deploy(self, component: str, objects: Iterable[Object]) -> list[Object]:
        self.desired[self.owner(component)] = list(objects)
        return []

    async def destroy(self, component: str, objects: Iterable[Object], *, seconds: float) -> None:  # noqa: ARG002 - unused
        self.desired[self.owner(component)] = []

    def is_gone(self, component: str) -> bool:
        return self._real.is_gone(component)

    def forget(self, place: str) -> None:  # noqa: ARG002 - nothing was removed
        return

    async def destroy_collected(self) -> None:
        return
