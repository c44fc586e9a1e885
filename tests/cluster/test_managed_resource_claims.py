"""Who only lists an object holds up no removal; who can have it at once gets it without its being deleted."""

from collections.abc import Mapping
from typing import Any

import pytest

from kit.objects import account, config_map, role_binding, rule, user
from kit.rbac import grant
from kit.rig import Rig
from kube.objects import Object
from kube.resources import CLUSTER_ROLES

ACCOUNT = "resources.gardener.cloud/service-account-name"
DEPENDS_ON = "resources.gardener.cloud/depends-on"
IGNORE = {"resources.gardener.cloud/ignore": "true"}
READER = "reader"


def binding(rig: Rig) -> Object:
    return role_binding("contractor", user("contractor"), of=CLUSTER_ROLES, to="view", namespace=rig.namespace)


SQUATTERS: dict[str, tuple[Mapping[str, str], dict[str, Any], str]] = {
    "may not read": ({ACCOUNT: "stranger"}, {}, "ApplyFailed"),
    "may not write": ({ACCOUNT: READER}, {}, "ApplyFailed"),
    "names a wrong account": ({ACCOUNT: "a/b"}, {}, "ApplyFailed"),
    "waits": ({DEPENDS_ON: "never-there"}, {}, "WaitingForDependencies"),
    "depends on itself": ({DEPENDS_ON: "squatter"}, {}, "InvalidDependencies"),
    "ignores nonsense": ({"resources.gardener.cloud/ignore-differences": "- kind: 1"}, {}, "ApplyFailed"),
    "validates nonsense": ({"resources.gardener.cloud/field-validation": "x"}, {}, "ApplyFailed"),
    "adopts nothing": ({ACCOUNT: "stranger", "resources.gardener.cloud/adopt": "never"}, {}, "ApplyFailed"),
    "lacks a Secret": ({}, {"secretRefs": [{"name": "squatter"}, {"name": "missing"}]}, "CannotReadSecret"),
    "is not to be looked at": ({"gardener.cloud/operation": "wait-for-state"}, {}, ""),
    "is ignored": (IGNORE, {}, "ManagedResourceIgnored"),
}


@pytest.mark.parametrize("sort", SQUATTERS)
def test_who_cannot_write_an_object_holds_up_no_removal(sort: str, rig: Rig) -> None:
    annotated, spec, reason = SQUATTERS[sort]
    reads = rule("rbac.authorization.k8s.io", "rolebindings", "get"), rule("", "configmaps", "get")
    grant(rig.cluster, READER, *reads, namespace=rig.namespace, subject=account(READER, rig.namespace))
    rig.apply("owner", binding(rig), config_map("c"))
    rig.write("squatter", binding(rig), config_map("c"), annotated=annotated, **spec)
    rig.until(lambda: rig.applied("squatter")[1] == reason, "the squatter to be looked at")
    rig.write_secret("owner", config_map("c"))
    rig.until_gone("RoleBinding", "contractor")
    rig.until_applied("owner")
    rig.delete_managed_resource("owner")
    assert rig.find("ConfigMap", "c") is None


def test_an_ignored_object_that_may_only_be_read_is_not_left_to_the_reader(rig: Rig) -> None:
    """Nothing would be written to it, so nothing would be refused."""
    grant(
        rig.cluster,
        READER,
        rule("", "configmaps", "get"),
        namespace=rig.namespace,
        subject=account(READER, rig.namespace),
    )
    rig.apply("owner", config_map("c"), config_map("d"))
    rig.apply("squatter", config_map("c", annotations=IGNORE), annotated={ACCOUNT: READER})
    rig.write_secret("owner", config_map("d"))
    rig.until_gone("ConfigMap", "c")
    rig.until_applied("owner")


@pytest.mark.parametrize("annotated", [{}, {ACCOUNT: "deployer"}])
@pytest.mark.parametrize("ignored", [False, True])
def test_who_may_write_it_gets_it_as_it_is(annotated: dict[str, str], ignored: bool, rig: Rig) -> None:
    everything = rule("", "configmaps", "get create update patch delete")
    grant(rig.cluster, "deployer", everything, namespace=rig.namespace, subject=account("deployer", rig.namespace))
    rig.apply("owner", config_map("c"), config_map("d"))
    before = rig.uid("ConfigMap", "c")
    rig.write("heir", config_map("c", annotations=IGNORE if ignored else None), annotated=annotated)
    rig.until(lambda: rig.applied("heir")[1] == ("ApplySucceeded" if ignored else "ApplyFailed"), "a first look")
    rig.write_secret("owner", config_map("d"))
    rig.until(lambda: rig.listed("owner") == {"d"}, "it to be given up")
    rig.until_applied("heir")
    assert rig.uid("ConfigMap", "c") == before
    assert rig.origin("ConfigMap", "c") == ("" if ignored else "heir")
    rig.delete_managed_resource("heir")
    assert rig.find("ConfigMap", "c") is None


def test_an_object_moves_to_a_managed_resource_that_waits_for_the_one_that_drops_it(rig: Rig) -> None:
    rig.apply("base", config_map("moving"), config_map("a"))
    rig.write("app", config_map("b"), annotated={DEPENDS_ON: "base"})
    rig.until_applied("app")
    before = rig.uid("ConfigMap", "moving")
    with rig.asleep():
        rig.write_secret("app", config_map("b"), config_map("moving", {"k": "2"}))
        rig.write_secret("base", config_map("a"))
    rig.until_data("moving", {"k": "2"})
    for name in ("base", "app"):
        rig.until_applied(name)
    assert rig.uid("ConfigMap", "moving") == before
    assert rig.origin("ConfigMap", "moving") == "app"


def test_a_claim_that_no_agent_stands_behind_is_reported_and_ends(rig: Rig) -> None:
    rig.apply("owner", binding(rig), config_map("c"))
    rig.write("squatter", binding(rig), resource_class="that-of-no-agent")
    rig.write_secret("owner", config_map("c"))
    claim = f"ManagedResource {rig.namespace}/squatter is about to take it over; otherwise it is deleted after 10s"
    rig.until_failed("owner", "contractor", claim, reason="DeletionPending")
    [event] = rig.until(lambda: rig.events("owner"), "an Event")
    assert event["reason"] == "RemovalHeldBack"
    assert claim in event["message"]
    rig.until_gone("RoleBinding", "contractor")
    rig.until_applied("owner")
    assert len(rig.events("owner")) == 1
