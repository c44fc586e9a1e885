"""What a user changes by hand is corrected at once; what is none of our business stays."""

import time
from collections.abc import Callable

import pytest

from devcluster.audit import Audit
from kit.objects import config_map, deployment, role, service
from kit.rig import Rig, stamped_by
from kit.world import WRITES
from kube.objects import Object, annotations, labels

_MANAGED_BY = "resources.gardener.cloud/managed-by"
_ORIGIN = "resources.gardener.cloud/origin"
_SOON = 12.0
"""Seconds; usually it takes a tenth of one. The next regular pass, which would put it right, too, comes later."""


@pytest.fixture
def managed(rig: Rig) -> Rig:
    """A ConfigMap `c` with data, a label and an annotation."""
    rig.apply("mr", config_map("c", {"k": "v"}, labels={"app": "ours"}, annotations={"note": "ours"}))
    return rig


def is_right(rig: Rig) -> bool:
    live = rig.find("ConfigMap", "c")
    return (
        live is not None
        and live.get("data") == {"k": "v"}
        and labels(live).get("app") == "ours"
        and annotations(live).get("note") == "ours"
        and stamped_by(live) == rig.agent.managed_by
        and rig.origin("ConfigMap", "c") == "mr"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"k": "drifted"}},
        {"data": {"more": "data"}},
        {"data": {"k": None}},
        {"metadata": {"labels": {"app": "theirs"}}},
        {"metadata": {"labels": {"app": None}}},
        {"metadata": {"annotations": {"note": "theirs"}}},
        {"metadata": {"annotations": {"note": None}}},
        {"metadata": {"annotations": {_ORIGIN: None}}},
        {"metadata": {"annotations": {_ORIGIN: "some/body"}}},
        {"metadata": {"labels": {_MANAGED_BY: "theirs"}}},
        {"metadata": {"labels": {_MANAGED_BY: None}}},
        {"metadata": {"labels": None, "annotations": None}, "data": None},
    ],
    ids=str,
)
def test_a_change_by_hand_is_corrected(change: Object, managed: Rig) -> None:
    before = managed.uid("ConfigMap", "c")
    managed.patch("ConfigMap", "c", change)
    managed.until(lambda: is_right(managed), "the ConfigMap to be right", seconds=_SOON)
    assert managed.uid("ConfigMap", "c") == before


def test_an_object_that_was_deleted_by_hand_is_recreated(managed: Rig) -> None:
    managed.delete("ConfigMap", "c")
    managed.until(lambda: is_right(managed), "the ConfigMap to be back", seconds=_SOON)


def test_an_object_that_was_replaced_by_hand_is_taken_over(managed: Rig) -> None:
    with managed.asleep():
        managed.delete("ConfigMap", "c")
        foreign = managed.put(config_map("c", {"k": "other"}, annotations={"mine": "stays"}))
    managed.until(lambda: is_right(managed), "the ConfigMap to be right", seconds=_SOON)
    live = managed.get("ConfigMap", "c")
    assert live["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert live["metadata"]["annotations"]["mine"] == "stays"


def test_labels_and_annotations_of_others_are_kept(managed: Rig, audit: Audit) -> None:
    mark = audit.mark()
    managed.patch("ConfigMap", "c", {"metadata": {"labels": {"their": "label"}, "annotations": {"their": "note"}}})
    managed.patch("ConfigMap", "c", {"data": {"k": "drifted"}})
    managed.until(lambda: is_right(managed), "the ConfigMap to be right", seconds=_SOON)
    meta = managed.get("ConfigMap", "c")["metadata"]
    assert meta["labels"]["their"] == "label"
    assert meta["annotations"]["their"] == "note"

    def written() -> list[str]:
        calls = audit.calls(since=mark, namespace=managed.namespace, verbs=WRITES)
        return [call.verb for call in calls if call.user == managed.agent.user and call.resource == "configmaps"]

    managed.until(written, "the write in the audit log")
    # Labels of others are worth no write at all.
    assert written() == ["update"]


def test_labels_and_annotations_of_others_go_where_ours_are_to_be_the_only_ones(rig: Rig) -> None:
    rig.apply("mr", config_map("c"), forceOverwriteLabels=True, forceOverwriteAnnotations=True)
    rig.patch("ConfigMap", "c", {"metadata": {"labels": {"their": "label"}, "annotations": {"their": "note"}}})

    def only_ours() -> bool:
        meta = rig.get("ConfigMap", "c")["metadata"]
        return "their" not in meta["labels"] and "their" not in meta["annotations"]

    rig.until(only_ours, "the foreign label and annotation to go", seconds=_SOON)


@pytest.mark.parametrize(
    ("obj", "change", "reads"),
    [
        (service("x"), {"spec": {"ports": [{"port": 81}]}}, lambda live: live["spec"]["ports"][0]["port"] == 80),
        (deployment("x"), {"spec": {"replicas": 1}}, lambda live: live["spec"]["replicas"] == 0),
        (role("x"), {"rules": []}, lambda live: bool(live["rules"])),
    ],
    ids=["Service", "Deployment", "Role"],
)
def test_objects_with_defaults_of_the_server_are_corrected_too(
    obj: Object, change: Object, reads: Callable[[Object], bool], rig: Rig
) -> None:
    rig.apply("mr", obj)
    rig.patch(obj["kind"], "x", change)
    rig.until(lambda: reads(rig.get(obj["kind"], "x")), "the object to be right", seconds=_SOON)


def test_a_user_who_insists_does_not_get_an_answer_at_once_every_time(managed: Rig) -> None:
    began = time.monotonic()
    for number in range(10):
        managed.patch("ConfigMap", "c", {"data": {"k": f"drifted {number}"}})
        managed.until(lambda: is_right(managed), "the ConfigMap to be right")
    # The waits double after some repairs; the last repair may not be counted yet when the next change is seen.
    assert time.monotonic() - began > 2
