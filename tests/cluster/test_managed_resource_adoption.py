"""What others change, and what existed before without an owner, is reported by name; who refuses to have it taken over may."""

import pytest

from kit.objects import config_map, deployment, secret
from kit.rig import Rig
from kube.objects import Object

ADOPT = "resources.gardener.cloud/adopt"
NEVER = {ADOPT: "never"}


def reported(rig: Rig, reason: str, name: str = "mr") -> list[str]:
    return [event["message"] for event in rig.events(name, event_type="Normal") if event["reason"] == reason]


def until_reported(rig: Rig, reason: str, text: str) -> None:
    rig.until(lambda: text in reported(rig, reason), f"the Event {reason}: {text}")


def in_log(rig: Rig, field: str, text: str) -> bool:
    return any(f'"{field}":["{text}' in line for line in rig.process.log.splitlines() if rig.namespace in line)


def test_drift_that_was_corrected_is_reported_by_object_and_field(rig: Rig) -> None:
    rig.apply("mr", deployment("storefront", replicas=2), config_map("prices", {"tea": "3", "milk": "1"}))
    rig.patch("Deployment", "storefront", {"spec": {"replicas": 5}})
    changed = f"Deployment/{rig.namespace}/storefront: spec.replicas 5 -> 2"
    until_reported(rig, "Reconciled", f"Objects were repaired: {changed}")
    rig.until(lambda: in_log(rig, "repaired", changed), "the log to name it")

    rig.patch("ConfigMap", "prices", {"data": {"tea": "4", "water": "0", "milk": None}})
    fields = "data.tea 4 -> 3, data.water 0 -> (none), data.milk (none) -> 1"
    until_reported(rig, "Reconciled", f"Objects were repaired: ConfigMap/{rig.namespace}/prices: {fields}")

    rig.delete("ConfigMap", "prices")
    until_reported(rig, "Reconciled", f"Objects were repaired: ConfigMap/{rig.namespace}/prices had been deleted")


def test_of_a_secret_no_value_is_reported(rig: Rig) -> None:
    rig.apply("mr", secret("s", {"password": b"right-a81f5c"}))
    rig.patch("Secret", "s", {"stringData": {"password": "wrong-a81f5c"}})
    until_reported(rig, "Reconciled", f"Objects were repaired: Secret/{rig.namespace}/s: data")
    assert "a81f5c" not in rig.process.log


def test_an_object_that_existed_without_an_owner_is_reported_to_be_taken_over(rig: Rig) -> None:
    rig.put(config_map("c", {"k": "theirs"}))
    rig.apply("mr", config_map("c", {"k": "ours"}), config_map("new"))
    text = f"Took over existing objects without an owner: ConfigMap/{rig.namespace}/c: data.k theirs -> ours"
    until_reported(rig, "TakenOver", text)

    # From now on it is ours: if a user takes our stamp off, that is drift.
    rig.patch("ConfigMap", "c", {"metadata": {"annotations": {"resources.gardener.cloud/origin": None}}})
    rig.until(lambda: rig.origin("ConfigMap", "c") == "mr", "the stamp to be back")
    rig.until(lambda: reported(rig, "Reconciled"), "the Event")
    assert reported(rig, "TakenOver") == [text]


@pytest.mark.parametrize(
    ("of_object", "of_managed_resource", "ignored"),
    [(NEVER, {}, {}), ({}, NEVER, {}), (NEVER, {}, {"resources.gardener.cloud/ignore": "true"})],
    ids=["object", "ManagedResource", "ignored object"],
)
def test_an_object_that_existed_is_left_alone_if_that_is_refused(
    of_object: Object, of_managed_resource: Object, ignored: Object, rig: Rig
) -> None:
    theirs = rig.put(config_map("c", {"k": "theirs"}))
    rig.write_secret("mr", config_map("c", {"k": "ours"}, annotations={**of_object, **ignored}), config_map("other"))
    rig.write_managed_resource("mr", annotated=of_managed_resource)
    whose = "object" if of_object else "ManagedResource"
    rig.until_failed(
        "mr",
        f'object "v1/ConfigMap/{rig.namespace}/c" exists without an owner and is not taken over',
        f'the annotation {ADOPT} of the {whose} is "never"',
        "give the object another name, delete the one that exists, or remove the annotation",
    )
    rig.until(lambda: rig.find("ConfigMap", "other"), "the other object")
    assert rig.get("ConfigMap", "c") == theirs

    rig.delete_managed_resource("mr")
    assert rig.get("ConfigMap", "c") == theirs
    assert rig.find("ConfigMap", "other") is None


def test_an_object_of_its_own_is_corrected_although_none_is_to_be_taken_over(rig: Rig) -> None:
    rig.apply("mr", config_map("c", {"k": "v"}, annotations=NEVER))
    rig.patch("ConfigMap", "c", {"metadata": {"annotations": {"resources.gardener.cloud/origin": None}}})
    rig.until(lambda: rig.origin("ConfigMap", "c") == "mr", "the stamp to be back")
    rig.until_applied("mr")


def test_once_it_is_not_refused_any_more_it_is_taken_over(rig: Rig) -> None:
    rig.put(config_map("c", {"k": "theirs"}))
    rig.write_secret("mr", config_map("c", {"k": "ours"}))
    rig.write_managed_resource("mr", annotated=NEVER)
    rig.until_failed("mr", "exists without an owner")
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {ADOPT: None}}})
    rig.until_data("c", {"k": "ours"})
    rig.until_applied("mr")
