"""Kinds that come and go: the agent follows them without a restart, and without filling its log."""

import contextlib
from collections.abc import Iterator

import pytest
from managed_resource_rig import Rig, config_map, custom_kind

from kube.errors import KubeError, NotFound, TooManyRequests
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

_SOON = 12.0
"""Seconds; less than until the next regular pass."""


class Widgets:
    """A kind of the test's own, and one object of it."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.group = f"{rig.namespace}.example.com"
        self.definition, self.resource = custom_kind(self.group, "Widget")
        self.name = self.definition["metadata"]["name"]
        self.widget: Object = {
            "apiVersion": self.resource.api_version,
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": rig.namespace},
            "spec": {"size": 1},
        }

    def install(self) -> None:
        self._rig.cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), self.definition)

    def uninstall(self) -> None:
        self._rig.cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=self.name))
        self._rig.until(lambda: self._find(CUSTOM_RESOURCE_DEFINITIONS, self.name) is None, "the kind to be gone")

    def find(self) -> Object | None:
        return self._find(self.resource, "w")

    def definition_uid(self) -> str:
        found = self._find(CUSTOM_RESOURCE_DEFINITIONS, self.name)
        return str(found["metadata"]["uid"]) if found else ""

    def _find(self, resource: Resource, name: str) -> Object | None:
        try:
            return self._rig.cluster.api.get(resource.path(namespace=self._rig.namespace, name=name))
        except KubeError:
            return None

    def change_by_hand(self) -> None:
        path = self.resource.path(namespace=self._rig.namespace, name="w")

        def changed() -> bool:
            # The API server may serve a new kind, forget it for a moment and serve it again.
            with contextlib.suppress(NotFound, TooManyRequests):
                return bool(self._rig.cluster.api.patch(path, {"spec": {"size": 2}}))
            return False

        self._rig.until(changed, "a change by hand")

    def until_right(self) -> None:
        self._rig.until(lambda: (self.find() or {}).get("spec") == {"size": 1}, "the object to be right", seconds=_SOON)


@pytest.fixture
def widgets(rig: Rig) -> Iterator[Widgets]:
    found = Widgets(rig)
    yield found
    # First whoever would make the kind anew.
    with contextlib.suppress(NotFound):
        rig.delete("ManagedResource", "mr")
        rig.until_gone("ManagedResource", "mr")
    with contextlib.suppress(NotFound):
        found.uninstall()


def test_a_kind_and_an_object_of_it_come_and_go_together(rig: Rig, widgets: Widgets) -> None:
    rig.write("mr", widgets.definition, widgets.widget, config_map("c"))
    rig.until_applied("mr")
    rig.until(widgets.find, "the object")
    rig.delete("ManagedResource", "mr")
    rig.until_gone("ManagedResource", "mr")
    assert widgets.find() is None
    assert widgets.definition_uid() == ""


def test_a_kind_that_comes_late_is_used_at_once(rig: Rig, widgets: Widgets) -> None:
    rig.write("mr", widgets.widget, config_map("c"))
    rig.until_failed("mr", f'no matches for kind "Widget" in version "{widgets.group}/v1"')
    assert rig.find("ConfigMap", "c")
    widgets.install()
    rig.until_applied("mr", seconds=30)
    rig.until(widgets.find, "the object")


def test_objects_of_a_late_kind_are_put_right_like_others(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.write("mr", widgets.widget)
    rig.until_applied("mr")
    widgets.change_by_hand()
    widgets.until_right()


def test_a_kind_that_is_deleted_and_made_anew_is_followed(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.write("mr", widgets.widget, config_map("c", k="1"))
    rig.until_applied("mr")
    before = len(rig.process.log.splitlines())
    widgets.uninstall()
    rig.until_failed("mr", 'no matches for kind "Widget"')
    rig.write_secret("mr", widgets.widget, config_map("c", k="2"))
    rig.until_data("c", {"k": "2"})
    widgets.install()
    rig.until_applied("mr")
    rig.until(widgets.find, "the object")
    widgets.change_by_hand()
    widgets.until_right()
    told = [line for line in rig.process.log.splitlines()[before:] if rig.namespace in line or widgets.group in line]
    assert len(told) < 60, "\n".join(told)


def test_a_managed_kind_that_is_deleted_by_hand_comes_back_with_its_objects(rig: Rig, widgets: Widgets) -> None:
    rig.write("mr", widgets.definition, widgets.widget)
    rig.until_applied("mr")
    before = widgets.definition_uid()
    log = len(rig.process.log.splitlines())
    rig.cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=widgets.name))
    rig.until(lambda: widgets.definition_uid() not in {"", before}, "the kind to be back")
    rig.until(widgets.find, "the object to be back")
    rig.until_applied("mr")
    told = [line for line in rig.process.log.splitlines()[log:] if rig.namespace in line]
    assert len(told) < 60, "\n".join(told)


def test_a_managed_resource_goes_though_a_kind_of_its_objects_is_gone(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.write("mr", widgets.widget, config_map("c"))
    rig.until_applied("mr")
    widgets.uninstall()
    rig.delete("ManagedResource", "mr")
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c") is None
