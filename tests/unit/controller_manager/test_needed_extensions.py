"""What Seeds need, who provides it, and how what is needed is counted."""

from collections import defaultdict
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.controller_registration.installations.requirements import (
    ShootRequirements,
    missing,
    needed_extensions,
    requirements_of_shoot,
    wanted_registrations,
)
from agent.controller_manager.controller_registration.installations.seed_requirements import DistinctValues
from gardener.api.garden import CONTROLLER_REGISTRATIONS, SEEDS
from gardener.garden.domains import Domain
from gardener.garden.extensions import Extension, provided
from kit.garden_objects import garden_object, shoot
from kube.objects import Key, Object

DELETING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
DEFAULT_DOMAINS = [Domain("shoots.org", "route", "", "a"), Domain("free.org", "unmanaged", "", "b")]
POOLS = {"ControlPlane/local", "Infrastructure/local", "Worker/local"}
OF_SHOOT = {*POOLS, "Network/calico", "OperatingSystemConfig/os"}


valid = partial(shoot, whole=True)


def texts(found: object) -> set[str]:
    return {str(each) for each in found}  # type: ignore[attr-defined]


def registration(name: str, *provides: str, policy: str = "", selector: Object | None = None, **meta: object) -> Object:
    pairs = [each.split("/") for each in provides]
    deployment = {**({"policy": policy} if policy else {}), **({"seedSelector": selector} if selector else {})}
    return {
        "metadata": {"name": name, **meta},
        "spec": {"resources": [{"kind": kind, "type": of_type} for kind, of_type in pairs], "deployment": deployment},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, OF_SHOOT),
        ({"extensions": [{"type": "x"}, {"type": "y", "disabled": True}]}, {*OF_SHOOT, "Extension/x"}),
        ({"networking": {}}, OF_SHOOT - {"Network/calico"}),
        ({"provider": {"type": "local"}}, set()),
        ({"provider": {"type": "local", "workers": []}, "extensions": [{"type": "x"}]}, {"Extension/x"}),
        (
            {"dns": {"providers": [{"type": "route", "primary": True}, {"type": "other"}]}},
            {*OF_SHOOT, "DNSRecord/route"},
        ),
        ({"dns": {"providers": [{"type": "unmanaged", "primary": True}]}}, OF_SHOOT),
        ({"dns": {"domain": "s.p.shoots.org"}}, {*OF_SHOOT, "DNSRecord/route"}),
        ({"dns": {"domain": "shoots.org"}}, OF_SHOOT),
        ({"dns": {"domain": "s.p.free.org"}}, OF_SHOOT),
        ({"dns": {"domain": "s.other.org"}}, OF_SHOOT),
        (
            {
                "provider": {
                    "type": "local",
                    "workers": [
                        {
                            "machine": {"image": {"name": "os"}},
                            "cri": {"containerRuntimes": [{"type": "gvisor"}, {"type": "kata"}]},
                        },
                        {"machine": {"image": {"name": "other"}}},
                    ],
                }
            },
            {*OF_SHOOT, "OperatingSystemConfig/other", "ContainerRuntime/gvisor", "ContainerRuntime/kata"},
        ),
    ],
)
def test_needs_of_shoots(spec: Object, expected: set[str]) -> None:
    assert texts(requirements_of_shoot(valid(**spec), DEFAULT_DOMAINS).extensions) == expected


def seed(**spec: object) -> Object:
    obj = garden_object(SEEDS, "seed", labels={"zone": "eu"})
    return {**obj, "spec": {**obj["spec"], **spec}}


def needed(seed: Object, *shoots: Object, registrations: tuple[Object, ...] = (), **others: object) -> set[str]:
    arguments = {"buckets": (), "entries": (), "internal_domain": None, **others}
    needs = {requirements_of_shoot(each, DEFAULT_DOMAINS) for each in shoots}
    return texts(needed_extensions(seed, shoots=needs, registrations=registrations, **arguments))  # type: ignore[arg-type]


def test_what_a_seed_needs_by_itself() -> None:
    assert needed(seed()) == {*POOLS, "DNSRecord/local"}
    assert needed(seed(dns={})) == POOLS
    deleting = {**seed(), "metadata": {"name": "seed", **DELETING}}
    assert needed(deleting, buckets=["s3"], entries=["gcs"]) == {"BackupBucket/s3", "BackupEntry/gcs"}


def test_what_a_seed_needs_for_its_shoots() -> None:
    with_backup = seed(backup={"provider": "s3"})
    backup = {"BackupBucket/s3", "BackupEntry/s3"}
    assert needed(with_backup) == needed(seed())
    assert needed(with_backup, valid()) == {*OF_SHOOT, *backup, "DNSRecord/local"}
    internal = Domain("i.org", "google", "", "i")
    assert needed(seed(), internal_domain=internal) == needed(seed())
    assert needed(seed(), valid(), internal_domain=internal) == {*OF_SHOOT, "DNSRecord/local", "DNSRecord/google"}
    assert needed(seed(), valid(), internal_domain=Domain("i.org", "unmanaged", "", "i")) == needed(seed(), valid())


def test_what_is_enabled_for_all_shoots() -> None:
    resources = [
        {"kind": "Extension", "type": "a", "globallyEnabled": True},
        {"kind": "Extension", "type": "b", "globallyEnabled": True, "workerlessSupported": True},
        {"kind": "Extension", "type": "c"},
    ]
    registrations = ({"spec": {"resources": resources}},)
    workerless = valid(provider={"type": "local"})
    without_a = valid(extensions=[{"type": "a", "disabled": True}])
    found = {
        name: {each for each in needed(seed(), *shoots, registrations=registrations) if each.startswith("Ext")}
        for name, shoots in {"none": (), "plain": (valid(),), "less": (workerless,), "no a": (without_a,)}.items()
    }
    assert found == {
        "none": set(),
        "plain": {"Extension/a", "Extension/b"},
        "less": {"Extension/b"},
        "no a": {"Extension/b"},
    }


def test_what_no_registration_provides() -> None:
    needs = {Extension("Worker", "b"), Extension("Worker", "a"), Extension("Network", "c")}
    assert texts(missing(needs, [registration("r", "Network/c")])) == {"Worker/a", "Worker/b"}
    assert missing(needs, [registration("r", "Network/c", "Worker/a"), registration("s", "Worker/b")]) == []


@pytest.mark.parametrize(
    ("chosen", "shoots", "deleting", "expected"),
    [
        (registration("r", "Worker/local"), False, False, True),
        (registration("r", "Worker/other"), False, False, False),
        (registration("r", "Worker/local", **DELETING), False, False, True),
        (registration("r", policy="Always"), False, False, True),
        (registration("r", policy="Always"), True, True, False),
        (registration("r", policy="Always", **DELETING), True, False, False),
        (registration("r", policy="AlwaysExceptNoShoots"), False, False, False),
        (registration("r", policy="AlwaysExceptNoShoots"), True, False, True),
        (registration("r", policy="AlwaysExceptNoShoots"), True, True, True),
        (registration("r", "Worker/local", policy="OnDemand", selector={"matchLabels": {"zone": "eu"}}), 0, 0, True),
        (registration("r", "Worker/local", selector={"matchLabels": {"zone": "us"}}), False, False, False),
        (registration("r", policy="Always", selector={"matchLabels": {"zone": "us"}}), False, False, False),
    ],
)
def test_who_is_wanted(chosen: Object, shoots: bool, deleting: bool, expected: bool) -> None:
    on = {**seed(), "metadata": {**seed()["metadata"], **(DELETING if deleting else {})}}
    found = wanted_registrations(
        on,
        needed={Extension("Worker", "local")} & set(provided(chosen)),
        registrations={"r": chosen},
        required=(),
        has_shoots=bool(shoots),
    )
    assert (found.registrations, found.problems) == (frozenset({"r"} if expected else ()), ())


def test_what_none_provides_is_reported_and_stops_no_other() -> None:
    needed = {Extension("Worker", "local"), Extension("Extension", "gone")}
    registrations = {"r": registration("r", "Worker/local")}
    found = wanted_registrations(seed(), needed=needed, registrations=registrations, required=(), has_shoots=True)
    assert found.registrations == {"r"}
    assert not found.is_complete
    assert found.problems == (
        'need to install an extension controller for "Extension/gone" but no appropriate ControllerRegistration found',
    )


def test_who_is_wanted_since_something_is_left() -> None:
    registrations = {
        "a": registration("a"),
        "b": registration("b", selector={"matchLabels": {"zone": "us"}}),
        "c": registration("c", selector={"matchExpressions": [{"key": "zone", "operator": "Near"}]}),
    }
    found = wanted_registrations(
        seed(), needed=(), registrations=registrations, required=("a", "b", "c", "d"), has_shoots=False
    )
    assert found.registrations == {"a", "c"}
    assert found.problems == (
        "ControllerRegistration with name d not found",
        'spec.deployment.seedSelector of ControllerRegistration c: "Near" is not a valid label selector operator',
    )


def test_registrations_of_the_kit_are_understood() -> None:
    assert missing([Extension("Extension", "e")], [garden_object(CONTROLLER_REGISTRATIONS)]) == []


# --- counting

KEYS = st.sampled_from([Key("n", name) for name in "abcd"])
STEPS = st.lists(
    st.tuples(KEYS, st.none() | st.tuples(st.frozensets(st.sampled_from("xyz")), st.sampled_from("pq"))), max_size=20
)


@given(STEPS)
def test_counted_values_are_those_of_the_objects(
    steps: list[tuple[Key, tuple[frozenset[str], str] | None]],
) -> None:
    counted: DistinctValues[str] = DistinctValues()
    objects: dict[Key, tuple[frozenset[str], str]] = {}

    def values() -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for groups, value in objects.values():
            for group in groups:
                found[group].add(value)
        return found

    for key, step in steps:
        before = values()
        if step is None:
            objects.pop(key, None)
            changed = counted.remove(key)
        else:
            objects[key] = step
            changed = counted.put(key, *step)
        after = values()
        assert changed == {group for group in "xyz" if before[group] != after[group]}
        assert {group: set(counted.of(group)) for group in "xyz"} == {group: after[group] for group in "xyz"}
        assert counted.groups_with("p") == {group for group in "xyz" if "p" in after[group]}


def test_many_shoots_of_one_kind_count_once() -> None:
    counted: DistinctValues[ShootRequirements] = DistinctValues()
    changed = [counted.put(Key("n", f"s{i}"), {"seed"}, requirements_of_shoot(valid(), ())) for i in range(50)]
    assert changed == [{"seed"}, *[set()] * 49]
    assert len(counted.of("seed")) == 1
