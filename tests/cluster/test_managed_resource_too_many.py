"""More objects than a status can list: this is reported in time, and nothing is lost.

What counts are bytes. So a few objects with large annotations stand for thousands of usual ones, and objects of a kind
that are not served, which are listed and never created, for those that are.
"""

import brotli
import orjson

from kit.objects import config_map, obj
from kit.rig import Rig
from kube.objects import Object

TOO_LARGE = "more than the API server stores in a status"
REMEDY = "divide the objects among several ManagedResources"
_LARGE = 200_000
"""Bytes of annotations; an object may have 256 KiB."""


def write(rig: Rig, *objects: Object) -> None:
    text = b"\n".join(orjson.dumps(rig.placed(each)) for each in objects)
    rig.write_data("mr", {"objects.json.br": brotli.compress(text, quality=5)})
    rig.write_managed_resource("mr")


def large(*names: str, size: int = _LARGE, version: str = "1") -> list[Object]:
    return [config_map(name, {"version": version}, annotations={"large": "x" * size}) for name in names]


def unserved(count: int) -> list[Object]:
    return [obj("example.com/v9 Unheard", f"n{n}") for n in range(count)]


def test_what_cannot_be_listed_is_not_created_and_it_is_reported_what_to_do(rig: Rig) -> None:
    write(rig, config_map("sibling"))
    rig.until_applied("mr")
    names = [f"c{number}" for number in range(8)]
    write(rig, config_map("sibling"), *large(*names))
    message = rig.until_failed("mr", TOO_LARGE, REMEDY)
    assert message.startswith("the list of its 9 objects takes 15")
    assert [name for name in names if rig.find("ConfigMap", name)] == []
    assert rig.find("ConfigMap", "sibling")
    assert rig.listed("mr") == {"sibling"}
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "ApplyFailed"
    assert TOO_LARGE in event["message"]

    write(rig, config_map("sibling"), *large(*names[:2]))
    rig.until_applied("mr")
    assert rig.listed("mr") == {"sibling", *names[:2]}


def test_objects_whose_entries_grow_too_large_are_reported_and_stay_listed(rig: Rig) -> None:
    names = [f"c{number}" for number in range(8)]
    write(rig, *large(*names, size=10))
    rig.until_applied("mr")
    write(rig, *large(*names, version="2"))
    rig.until_failed("mr", TOO_LARGE, REMEDY)
    assert rig.listed("mr") == set(names)
    rig.until(lambda: rig.events("mr"), "an event")
    assert rig.get("ConfigMap", "c7")["data"] == {"version": "2"}

    # What helps is found at once.
    write(rig, *large(*names, size=10, version="3"))
    rig.until_applied("mr")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c7") is None


def test_five_thousand_objects_are_listed_in_a_few_hundred_kilobytes(rig: Rig) -> None:
    write(rig, *unserved(5000))
    rig.until_failed("mr", "5000 errors occurred")
    listed = rig.get("ManagedResource", "mr")["status"]["pendingResources"]
    assert len(listed) == 5000
    assert len(orjson.dumps(listed)) < 5000 * 160
    write(rig, *unserved(12_000))
    rig.until_failed("mr", "the list of its 12000 objects takes 17", REMEDY)


def test_many_objects_beside_many_others_are_listed_in_short(rig: Rig) -> None:
    names = [f"c{number}" for number in range(6)]
    write(rig, *large(*names, size=180_000))
    rig.until_applied("mr")
    write(rig, *large(*names, size=180_000), *unserved(4500))
    rig.until_failed("mr", "4500 errors occurred")
    listed = rig.get("ManagedResource", "mr")["status"]["pendingResources"]
    assert len(listed) == 4500
    assert {"labels" in entry for entry in listed} == {False}
