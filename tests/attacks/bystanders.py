"""Another author, who waits for the same agent as the attacker does."""

import threading
import time
from collections.abc import Callable

from devcluster.cluster import Cluster
from kit.objects import bundle, config_map, managed_resource
from kit.world import Place
from kube.objects import Object

_LONGEST_SECONDS = 60.0


class Bystander(threading.Thread):
    """Creates small ManagedResources until the end, and changes their objects behind the agent.

    Args: ends: set at the end. resource_class: none: the default.

    Attributes: applied, repaired: seconds that each took.
    """

    def __init__(
        self, place: Place, ends: threading.Event, *, name: str, resource_class: str = "", pause: float = 0.2
    ) -> None:
        super().__init__()
        self._place, self._ends, self._name, self._class, self._pause = place, ends, name, resource_class, pause
        self.applied: list[float] = []
        self.repaired: list[float] = []

    def run(self) -> None:
        number = 0
        while not self._ends.wait(self._pause):
            self._once(f"{self._name}-{number}")
            number += 1

    def _once(self, name: str) -> None:
        place = self._place
        place.create(bundle(name, config_map(f"{place.namespace}/{name}", {"k": "v"})))
        place.create(managed_resource(name, spec={"class": self._class} if self._class else {}))
        self.applied.append(self._until(lambda: place.find("ConfigMap", name)))
        if place.find("ConfigMap", name):
            place.patch("ConfigMap", name, {"data": {"k": "drift"}})
            self.repaired.append(self._until(lambda: _value(place.find("ConfigMap", name)) == "v"))
        place.delete("ManagedResource", name)
        place.delete("Secret", name)

    def _until(self, found: Callable[[], object]) -> float:
        began = time.monotonic()
        while not found() and time.monotonic() < began + _LONGEST_SECONDS:
            time.sleep(0.02)
        return time.monotonic() - began

    def row(self) -> str:
        """Two cells of a table: the longest times, and how many there were."""
        return " | ".join(f"{max(each, default=0):.2f} ({len(each)})" for each in (self.applied, self.repaired))


def _value(obj: Object | None) -> object:
    return ((obj or {}).get("data") or {}).get("k")


def namespace(cluster: Cluster, name: str, **labels: str) -> Place:
    """A new one."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    return Place(cluster, name)
