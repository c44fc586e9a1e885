"""Nothing is leaked and nothing is hidden: objects are listed before they exist, and one that fails stops no other."""

from kit.objects import config_map, deployment, obj, service
from kit.rig import Rig
from kube.objects import Object


def elsewhere(name: str) -> Object:
    """In a namespace that does not exist."""
    return config_map(name, namespace="nowhere")


def test_what_was_created_before_a_failure_is_removed_with_the_managed_resource(rig: Rig) -> None:
    rig.write("mr", config_map("first"), elsewhere("second"))
    message = rig.until_failed("mr", 'namespaces "nowhere" not found')
    assert message.startswith('error during apply of object "v1/ConfigMap/nowhere/second"')
    assert rig.find("ConfigMap", "first")
    assert rig.listed("mr") == {"first", "second"}
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "first") is None


def test_what_was_created_before_a_failure_is_removed_when_it_is_dropped(rig: Rig) -> None:
    rig.write("mr", config_map("first"), elsewhere("second"))
    rig.until_failed("mr", 'namespaces "nowhere" not found')
    rig.apply("mr", config_map("third"))
    rig.until(lambda: rig.listed("mr") == {"third"}, "the list to be right")
    assert rig.find("ConfigMap", "first") is None


def test_an_object_beyond_its_quota_fails_until_there_is_room(rig: Rig) -> None:
    rig.put(obj("ResourceQuota", "quota", spec={"hard": {"count/services": "1"}}))
    rig.until(lambda: rig.get("ResourceQuota", "quota").get("status", {}).get("used"), "the quota to be counted")
    rig.write("mr", service("one"), service("two"))
    rig.until_failed("mr", "exceeded quota")
    assert rig.listed("mr") == {"one", "two"}
    rig.delete("ResourceQuota", "quota")
    # There is no event for that; it is tried again within a sync period.
    rig.until_applied("mr")
    assert rig.find("Service", "one")
    assert rig.find("Service", "two")


def test_all_failures_are_reported_and_all_other_objects_are_applied(rig: Rig) -> None:
    invalid_service = service("invalid", ports=[{"port": 0}])
    unknown = obj("example.com/v9 Unheard", "of")
    nameless = config_map(namespace=rig.namespace)
    broken = deployment("broken", selector={"matchLabels": {"app": "other"}})
    rig.write("mr", elsewhere("a"), nameless, config_map("good"), service("good"), invalid_service, unknown, broken)
    message = rig.until_failed(
        "mr",
        'namespaces "nowhere" not found',
        'Service "invalid" is invalid',
        'no matches for kind "Unheard" in version "example.com/v9"',
        "metadata.name: Required value",
        'Deployment.apps "broken" is invalid',
    )
    assert message.startswith("Could not apply all new resources: 5 errors occurred: [")
    assert rig.find("ConfigMap", "good")
    assert rig.find("Service", "good")
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "ApplyFailed"

    rig.write_secret("mr", config_map("good"))
    rig.until_applied("mr")
    assert rig.find("Service", "good") is None


def test_a_failure_does_not_keep_others_from_being_changed_and_removed(rig: Rig) -> None:
    rig.apply("mr", config_map("changed", {"k": "1"}), config_map("dropped"))
    rig.write_secret("mr", config_map("changed", {"k": "2"}), elsewhere("failing"))
    rig.until_data("changed", {"k": "2"})
    rig.until_gone("ConfigMap", "dropped")
    rig.until_failed("mr", 'namespaces "nowhere" not found')
