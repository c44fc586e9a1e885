"""An object belongs to one ManagedResource at a time: two do not fight for it, and it moves without being deleted."""

import pytest

from devcluster.audit import Audit
from kit.objects import config_map, secret
from kit.rig import Rig
from kit.world import WRITES
from kube.objects import Object


def held_by(rig: Rig, name: str, *, holder: str) -> str:
    return (
        f'object "v1/ConfigMap/{rig.namespace}/{name}" is held by ManagedResource {rig.namespace}/{holder};'
        " remove it from one of the two"
    )


def writes(rig: Rig, audit: Audit, *, since: int, resource: str = "configmaps") -> list[tuple[str, str]]:
    """Verbs and names of what the agent wrote in the namespace."""
    calls = audit.calls(since=since, namespace=rig.namespace, verbs=WRITES)
    return [(call.verb, call.name) for call in calls if call.user == rig.agent.user and call.resource == resource]


def have_a_pass(rig: Rig, name: str) -> None:
    rig.patch("ManagedResource", name, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    rig.until(lambda: "annotations" not in rig.get("ManagedResource", name)["metadata"], f"a pass over {name}")


def contend(rig: Rig) -> None:
    """`first` holds `shared`, and `second` wants it, too."""
    rig.apply("first", config_map("shared", {"of": "first"}), config_map("a"))
    rig.write("second", config_map("shared", {"of": "second"}), config_map("b"))
    rig.until_failed("second", held_by(rig, "shared", holder="first"))


def test_the_holder_keeps_an_object_that_another_one_claims(rig: Rig, audit: Audit) -> None:
    contend(rig)
    assert rig.get("ConfigMap", "shared")["data"] == {"of": "first"}
    assert rig.origin("ConfigMap", "shared") == "first"
    assert rig.applied("first")[0] == "True"
    # The rest of the second one is applied nevertheless.
    assert rig.origin("ConfigMap", "b") == "second"
    # And who reads events learns of it.
    warning = rig.until(lambda: rig.events("second"), "an event")[0]
    assert warning["reason"] == "ApplyFailed"
    assert held_by(rig, "shared", holder="first") in warning["message"]

    # From now on neither writes anything, though both have all reason to try.
    mark = audit.mark()
    for name in ("second", "first"):
        have_a_pass(rig, name)
    rig.write_secret("first", config_map("shared", {"of": "first"}), config_map("a", {"new": "content"}))
    rig.until_data("a", {"new": "content"})
    rig.until(lambda: writes(rig, audit, since=mark), "the write in the audit log")
    assert [name for _, name in writes(rig, audit, since=mark)] == ["a"]
    assert len(rig.events("second")) == 1


def test_an_object_that_its_holder_drops_goes_to_who_waits_for_it(rig: Rig) -> None:
    contend(rig)
    before = rig.uid("ConfigMap", "shared")
    rig.write_secret("first", config_map("a"))
    rig.until_data("shared", {"of": "second"})
    for name in ("first", "second"):
        rig.until_applied(name)
    assert rig.uid("ConfigMap", "shared") == before
    assert rig.origin("ConfigMap", "shared") == "second"
    rig.until(lambda: rig.listed("first") == {"a"}, "the list of the first to be right")


def test_an_object_of_a_deleted_managed_resource_goes_to_who_waits_for_it(rig: Rig) -> None:
    contend(rig)
    before = rig.uid("ConfigMap", "shared")
    rig.delete_managed_resource("first")
    rig.until_applied("second")
    assert rig.uid("ConfigMap", "shared") == before
    assert rig.get("ConfigMap", "shared")["data"] == {"of": "second"}
    assert rig.find("ConfigMap", "a") is None


def test_who_waits_for_an_object_may_go_without_touching_it(rig: Rig) -> None:
    contend(rig)
    before = rig.get("ConfigMap", "shared")
    rig.delete_managed_resource("second")
    assert rig.get("ConfigMap", "shared") == before
    assert rig.find("ConfigMap", "b") is None


def test_an_ignored_holder_keeps_its_objects(rig: Rig) -> None:
    rig.apply("first", config_map("shared", {"of": "first"}))
    rig.patch("ManagedResource", "first", {"metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}}})
    rig.until(lambda: rig.applied("first")[1] == "ManagedResourceIgnored", "first to be ignored")
    rig.write("second", config_map("shared", {"of": "second"}))
    rig.until_failed("second", held_by(rig, "shared", holder="first"))
    assert rig.get("ConfigMap", "shared")["data"] == {"of": "first"}


@pytest.mark.parametrize("order", [("to", "from"), ("from", "to")])
def test_an_object_moves_without_being_deleted_whichever_change_is_seen_first(
    order: tuple[str, str], rig: Rig, audit: Audit
) -> None:
    rig.write("from", config_map("moving", {"k": "1"}), config_map("a"))
    rig.write("to", config_map("b"))
    for name in order:
        rig.until_applied(name)
    before = rig.uid("ConfigMap", "moving")
    mark = audit.mark()
    contents = {"from": [config_map("a")], "to": [config_map("b"), config_map("moving", {"k": "2"})]}
    with rig.asleep():
        for name in order:
            rig.write_secret(name, *contents[name])
    rig.until_data("moving", {"k": "2"})
    for name in order:
        rig.until_applied(name)
    assert rig.uid("ConfigMap", "moving") == before
    assert rig.origin("ConfigMap", "moving") == "to"
    rig.until(lambda: rig.listed("from") == {"a"} and rig.listed("to") == {"b", "moving"}, "the lists to be right")
    assert "delete" not in [verb for verb, _ in writes(rig, audit, since=mark)]


@pytest.mark.parametrize("deleted_first", [True, False])
def test_an_object_moves_on_while_its_former_holder_is_deleted(deleted_first: bool, rig: Rig) -> None:
    rig.write("from", config_map("moving", {"k": "1"}), config_map("a"))
    rig.write("to", config_map("b"))
    for name in ("from", "to"):
        rig.until_applied(name)
    before = rig.uid("ConfigMap", "moving")
    with rig.asleep():
        if deleted_first:
            rig.delete("ManagedResource", "from")
        rig.write_secret("to", config_map("b"), config_map("moving", {"k": "2"}))
        if not deleted_first:
            rig.delete("ManagedResource", "from")
    rig.until_gone("ManagedResource", "from")
    rig.until_data("moving", {"k": "2"})
    rig.until_applied("to")
    assert rig.uid("ConfigMap", "moving") == before
    assert rig.find("ConfigMap", "a") is None


def test_an_object_of_another_client_is_taken_over(rig: Rig) -> None:
    foreign = config_map(
        "foreign", {"k": "old"}, annotations={"resources.gardener.cloud/origin": "else/where", "mine": "stays"}
    )
    before = rig.put(foreign)["metadata"]["uid"]
    rig.apply("mr", config_map("foreign", {"k": "new"}))
    live = rig.get("ConfigMap", "foreign")
    assert live["metadata"]["uid"] == before
    assert live["data"] == {"k": "new"}
    assert live["metadata"]["annotations"]["mine"] == "stays"
    assert rig.origin("ConfigMap", "foreign") == "mr"


def test_two_that_are_created_at_once_agree_on_one_holder(rig: Rig, audit: Audit) -> None:
    for name in ("x", "y"):
        rig.write_secret(name, config_map("shared", {"of": name}))
    for name in ("x", "y"):
        rig.write_managed_resource(name)
    rig.until(lambda: {rig.applied(name)[1] for name in ("x", "y")} == {"ApplySucceeded", "ApplyFailed"}, "one to win")
    holder = rig.origin("ConfigMap", "shared")
    assert rig.get("ConfigMap", "shared")["data"] == {"of": holder}
    assert rig.applied(holder)[0] == "True"
    mark = audit.mark()
    [other] = {"x", "y"} - {holder}
    for name in ("x", "y"):
        have_a_pass(rig, name)
    assert writes(rig, audit, since=mark) == []
    rig.until_failed(other, held_by(rig, "shared", holder=holder))


def test_an_object_that_could_not_be_taken_over_is_nobodys_to_delete(rig: Rig) -> None:
    """It was there before, and stays, whether it is dropped from the Secret or the whole ManagedResource goes."""

    def theirs(type_: str) -> Object:
        return secret("theirs", type=f"example.com/{type_}")

    before = rig.put(theirs("of-somebody"))
    rig.write("first", theirs("of-first"), config_map("a"))
    rig.until_failed("first", "field is immutable")
    rig.write_secret("first", config_map("a"))
    rig.until_applied("first")
    assert rig.get("Secret", "theirs") == before
    rig.write_secret("first", theirs("of-first"), config_map("a"))
    rig.until_failed("first", "field is immutable")
    rig.delete_managed_resource("first")
    assert rig.get("Secret", "theirs") == before
    assert rig.find("ConfigMap", "a") is None


ORIGIN, KEEP = "resources.gardener.cloud/origin", "resources.gardener.cloud/keep-object"
ELSEWHERE = {"metadata": {"annotations": {ORIGIN: "elsewhere:a/b"}}}


def patch_as_agent(rig: Rig, name: str, patch: Object) -> None:
    rig.api.patch(rig.path("ConfigMap", name) + "?fieldManager=gardener-resource-manager", patch)


def test_an_origin_that_no_agent_has_written_keeps_no_object_from_being_repaired(rig: Rig) -> None:
    """It was there before, and gets its former origin back as often as a user likes."""
    rig.put(config_map("c", {"k": "evil"}, annotations={ORIGIN: "elsewhere:a/b"}))
    rig.apply("mr", config_map("c", {"k": "good"}))
    for _ in range(2):
        rig.patch("ConfigMap", "c", {**ELSEWHERE, "data": {"k": "evil"}})
        rig.until_data("c", {"k": "good"})
        rig.until(lambda: rig.origin("ConfigMap", "c") == "mr", "its origin")
    rig.until_applied("mr")


@pytest.mark.parametrize("origin", ["elsewhere:a/b", "gone/mr", "none at all", ""])
def test_no_origin_that_others_write_outlives_a_removal(origin: str, rig: Rig) -> None:
    rig.apply("mr", config_map("c"), config_map("rest"))
    with rig.asleep():
        rig.patch("ConfigMap", "c", {"metadata": {"annotations": {ORIGIN: origin or None}}})
        rig.write_secret("mr", config_map("rest"))
    rig.until_gone("ConfigMap", "c")


def test_what_was_never_taken_over_is_not_deleted_for_its_origin(rig: Rig) -> None:
    theirs = secret("theirs", type="example.com/a", annotations={ORIGIN: "elsewhere:a/b"})
    before = rig.put(theirs)["metadata"]["uid"]
    rig.write("mr", secret("theirs", type="example.com/b"), config_map("rest"))
    rig.until_failed("mr", "field is immutable")
    rig.write_secret("mr", config_map("rest"))
    rig.until_applied("mr")
    assert rig.uid("Secret", "theirs") == before


def test_what_is_left_though_it_was_to_go_is_reported(rig: Rig) -> None:
    """An agent of another cluster may have taken it over, as far as can be seen; and the mark to keep it counts."""
    rig.apply("mr", config_map("a"), config_map("b"), config_map("rest"))
    with rig.asleep():
        patch_as_agent(rig, "a", ELSEWHERE)
        rig.patch("ConfigMap", "b", {"metadata": {"annotations": {KEEP: "true"}}})
        rig.write_secret("mr", config_map("rest"))
    rig.until(lambda: rig.listed("mr") == {"rest"}, "the others to be forgotten")
    texts = ["an agent has assigned it to ManagedResource elsewhere:a/b", f"it has the annotation {KEEP}"]
    rig.until(lambda: all(text in rig.applied("mr")[2] for text in texts), "the condition to report so")
    [event] = rig.until(lambda: rig.events("mr"), "an Event")
    assert all(text in event["message"] for text in texts)
    for name in "ab":
        assert rig.find("ConfigMap", name) is not None
