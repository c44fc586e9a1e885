"""Kinds that come, change and go: the agent follows them without a restart, and without filling its log."""

import base64
import contextlib
import copy
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from kit.kinds import custom_resource, definition
from kit.objects import bundle, config_map, obj
from kit.rig import Rig
from kube.errors import KubeError, NotFound, TooManyRequests
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from localprocesses.pki import serving_pair

_SOON = 12.0
"""Seconds; less than until the next regular pass."""
_COUNTED_LATE = 12.0
_MANAGED_RESOURCES = 8
"""More than there are workers."""


class Widgets:
    """A kind of the test's own, and one object of it."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.group = f"{rig.namespace}.example.com"
        self.resource = custom_resource(self.group, "Widget")
        self.definition = definition(self.resource)
        self.name = self.definition["metadata"]["name"]
        self.widget = obj(self.resource, "w", namespace=rig.namespace, spec={"size": 1})

    def install(self) -> None:
        self._rig.cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), self.definition)

    def add_version(self, name: str) -> None:
        """One that is served, but not stored."""
        versions = self.definition["spec"]["versions"]
        versions.append({**copy.deepcopy(versions[0]), "name": name, "storage": False})

    def serve_no_more(self, name: str) -> None:
        """The other version is stored from now on."""
        for version in self.definition["spec"]["versions"]:
            version["served"] = version["storage"] = version["name"] != name
        patch = {"spec": {"versions": self.definition["spec"]["versions"]}}
        self._rig.cluster.api.patch(CUSTOM_RESOURCE_DEFINITIONS.path(name=self.name), patch)
        path = self.resource.path(namespace=self._rig.namespace)
        self._rig.until(lambda: self._rig.cluster.api.raw("GET", path)[0] == 404, f"{name} not to be served any more")

    def serve(self, is_served: bool) -> None:
        (version,) = self.definition["spec"]["versions"]
        patch = {"spec": {"versions": [{**version, "served": is_served}]}}
        self._rig.cluster.api.patch(CUSTOM_RESOURCE_DEFINITIONS.path(name=self.name), patch)
        path, status = self.resource.path(namespace=self._rig.namespace), 200 if is_served else 404
        self._rig.until(lambda: self._rig.cluster.api.raw("GET", path)[0] == status, f"{status} as the answer")

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
    # First the objects that would recreate the kind.
    with contextlib.suppress(NotFound):
        rig.delete_managed_resource("mr")
    with contextlib.suppress(NotFound):
        found.uninstall()


def test_a_kind_and_an_object_of_it_come_and_go_together(rig: Rig, widgets: Widgets) -> None:
    rig.apply("mr", widgets.definition, widgets.widget, config_map("c"))
    rig.until(widgets.find, "the object")
    rig.delete_managed_resource("mr")
    assert widgets.find() is None
    assert widgets.definition_uid() == ""


def test_a_kind_that_comes_late_is_used_at_once(rig: Rig, widgets: Widgets) -> None:
    rig.write("mr", widgets.widget, config_map("c"))
    rig.until_failed("mr", f'no matches for kind "Widget" in version "{widgets.group}/v1"')
    assert rig.find("ConfigMap", "c")
    widgets.install()
    rig.until_applied("mr")
    rig.until(widgets.find, "the object")


def test_objects_of_a_late_kind_are_corrected_like_others(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.apply("mr", widgets.widget)
    widgets.change_by_hand()
    widgets.until_right()


def test_a_kind_that_is_deleted_and_recreated_is_followed(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.apply("mr", widgets.widget, config_map("c", {"k": "1"}))
    before = len(rig.process.log.splitlines())
    widgets.uninstall()
    rig.until_failed("mr", 'no matches for kind "Widget"')
    rig.write_secret("mr", widgets.widget, config_map("c", {"k": "2"}))
    rig.until_data("c", {"k": "2"})
    widgets.install()
    rig.until_applied("mr")
    rig.until(widgets.find, "the object")
    widgets.change_by_hand()
    widgets.until_right()
    reported = [
        line for line in rig.process.log.splitlines()[before:] if rig.namespace in line or widgets.group in line
    ]
    assert len(reported) < 60, "\n".join(reported)


def test_a_kind_that_changes_its_scope_is_followed_there_and_back(rig: Rig, widgets: Widgets) -> None:
    namespaced, of_cluster = widgets.resource, replace(widgets.resource, namespaced=False)
    widgets.install()
    rig.apply("mr", widgets.widget)
    for resource in of_cluster, namespaced:
        widgets.uninstall()
        rig.until_failed("mr", 'no matches for kind "Widget"')
        widgets.resource, widgets.definition = resource, definition(resource)
        widgets.install()
        # What is in the Secret is of the former scope until its author has followed.
        place = rig.namespace if resource.namespaced else ""
        rig.put(bundle("mr", obj(resource, "w", namespace=place, spec={"size": 1})))
        rig.until_applied("mr")
        rig.until(lambda: len(rig.references("mr")) == 1, "nothing of the former scope to be listed")
        path = resource.path(namespace=place, name="w")
        get = partial(rig.cluster.api.get, path)
        assert get()["spec"] == {"size": 1}
        rig.cluster.api.patch(path, {"spec": {"size": 2}})
        rig.until(lambda get=get: get()["spec"] == {"size": 1}, "drift to be corrected", seconds=_SOON)  # type: ignore[misc]
    rig.delete_managed_resource("mr")
    with pytest.raises(NotFound):
        rig.cluster.api.get(path)


def test_a_managed_kind_that_is_deleted_by_hand_comes_back_with_its_objects(rig: Rig, widgets: Widgets) -> None:
    rig.apply("mr", widgets.definition, widgets.widget)
    before = widgets.definition_uid()
    log = len(rig.process.log.splitlines())
    rig.cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=widgets.name))
    rig.until(lambda: widgets.definition_uid() not in {"", before}, "the kind to be back")
    rig.until(widgets.find, "the object to be back")
    rig.until_applied("mr")
    reported = [line for line in rig.process.log.splitlines()[log:] if rig.namespace in line]
    assert len(reported) < 60, "\n".join(reported)


def test_a_managed_resource_goes_though_a_kind_of_its_objects_is_gone(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.apply("mr", widgets.widget, config_map("c"))
    widgets.uninstall()
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c") is None


@pytest.mark.parametrize("whole", [False, True], ids=["the object is dropped", "the ManagedResource is deleted"])
def test_an_object_whose_version_is_no_longer_served_is_removed_by_another_one(
    rig: Rig, widgets: Widgets, whole: bool
) -> None:
    widgets.add_version("v2")
    widgets.install()
    rig.apply("mr", widgets.widget, config_map("c"))
    widgets.serve_no_more("v1")
    now = replace(widgets.resource, version="v2").path(namespace=rig.namespace, name="w")
    assert rig.cluster.api.get(now)
    if whole:
        rig.delete_managed_resource("mr")
    else:
        rig.write_secret("mr", config_map("c", {"k": "2"}))
        rig.until(lambda: rig.listed("mr") == {"c"}, "the object to be listed no more")
        rig.until_applied("mr")
    with pytest.raises(NotFound):
        rig.cluster.api.get(now)


@pytest.mark.parametrize("whole", [True, False], ids=["the ManagedResource", "the object"])
def test_an_object_is_not_gone_while_no_version_of_its_kind_is_served(rig: Rig, widgets: Widgets, whole: bool) -> None:
    widgets.install()
    rig.apply("mr", widgets.widget, config_map("c"))
    widgets.serve(False)
    if whole:
        rig.delete("ManagedResource", "mr")
    else:
        rig.write_secret("mr", config_map("c"))
    rig.until_failed("mr", f"CustomResourceDefinition {widgets.name} defines this kind", reason="DeletionPending")
    widgets.serve(True)
    rig.until(lambda: widgets.find() is None, "the object to be removed", seconds=_SOON)


def test_a_managed_resource_goes_with_a_kind_that_was_not_served_before(rig: Rig, widgets: Widgets) -> None:
    widgets.install()
    rig.apply("mr", widgets.widget)
    widgets.serve(False)
    rig.delete("ManagedResource", "mr")
    rig.until_failed("mr", f"CustomResourceDefinition {widgets.name} defines this kind", reason="DeletionPending")
    widgets.uninstall()
    rig.until_gone("ManagedResource", "mr", seconds=_SOON)


def test_a_kind_that_can_not_be_converted_affects_only_who_manages_it(rig: Rig, widgets: Widgets) -> None:
    widgets.add_version("v2")
    config = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    widgets.definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    widgets.install()
    stored = {**widgets.widget, "metadata": {"name": "stored", "namespace": rig.namespace}}
    path = widgets.resource.path(namespace=rig.namespace)

    def is_stored() -> bool:
        with contextlib.suppress(NotFound, TooManyRequests):
            return bool(rig.cluster.api.create(path, stored))
        return False

    rig.until(is_stored, "an object that no list can convert")
    began = time.monotonic()
    rig.write("mr", {**widgets.widget, "apiVersion": f"{widgets.group}/v2"})
    rig.write("other", config_map("c"))
    rig.until_failed("mr", "conversion webhook for", "/w")
    rig.until_applied("other")
    # It used to take ten seconds until such a watch counted.
    while time.monotonic() - began < _COUNTED_LATE:
        assert rig.process.probe() == (200, "ok")
        time.sleep(0.2)
    rig.cluster.api.patch(
        CUSTOM_RESOURCE_DEFINITIONS.path(name=widgets.name),
        {"spec": {"conversion": {"strategy": "None", "webhook": None}}},
    )
    rig.until_applied("mr")


def test_a_kind_whose_conversion_hangs_leaves_workers_to_others(rig: Rig, widgets: Widgets) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system takes connections for it
        pair = serving_pair(["127.0.0.1"])
        client = {
            "url": f"https://127.0.0.1:{silent.getsockname()[1]}/convert",
            "caBundle": base64.b64encode(pair.certificate).decode(),
        }
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        widgets.definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        widgets.add_version("v2")
        widgets.install()
        for number in range(_MANAGED_RESOURCES):
            objects = [
                {
                    **widgets.widget,
                    "apiVersion": f"{widgets.group}/v2",
                    "metadata": {"name": f"w{number}-{each}", "namespace": rig.namespace},
                }
                for each in range(12)
            ]
            rig.write(f"mr{number}", *objects)
        rig.until(
            lambda: any("take more than 2 s" in rig.applied(f"mr{n}")[2] for n in range(_MANAGED_RESOURCES)),
            "requests to give way",
        )
        rig.apply("other", config_map("c"))
        for number in range(_MANAGED_RESOURCES):
            rig.delete("ManagedResource", f"mr{number}")
        rig.cluster.api.patch(
            CUSTOM_RESOURCE_DEFINITIONS.path(name=widgets.name),
            {"spec": {"conversion": {"strategy": "None", "webhook": None}}},
        )
        for number in range(_MANAGED_RESOURCES):
            rig.until_gone("ManagedResource", f"mr{number}")
