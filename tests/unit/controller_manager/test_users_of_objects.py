"""Which objects of a garden refer to which, and how users are named in messages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden import users
from gardener.garden.users import MOST_NAMED, References, listed, reason
from kit.garden_objects import shoot
from kube.objects import Key, Object


def binding(**fields: Any) -> Object:
    return {"metadata": {"name": "b", "namespace": "garden-a"}, **fields}


def profile(kind: str) -> Object:
    return {"kind": kind, "name": "p"}


SECRET = {"apiVersion": "v1", "kind": "Secret", "name": "c", "namespace": "garden-x"}
IDENTITY = {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "name": "c"}


@pytest.mark.parametrize(
    ("references", "obj", "expected"),
    [
        (users.cloud_profiles, shoot("garden-a/s", cloudProfileName="p"), [Key("", "p")]),
        (users.cloud_profiles, shoot("garden-a/s", cloudProfile=profile("CloudProfile")), [Key("", "p")]),
        (users.cloud_profiles, shoot("garden-a/s", cloudProfile={"name": "p"}), [Key("", "p")]),
        (users.cloud_profiles, shoot("garden-a/s", cloudProfile={"name": "p"}, cloudProfileName="p"), [Key("", "p")]),
        (users.cloud_profiles, shoot("garden-a/s", cloudProfile=profile("NamespacedCloudProfile")), []),
        (
            users.namespaced_cloud_profiles,
            shoot("garden-a/s", cloudProfile=profile("NamespacedCloudProfile")),
            [Key("garden-a", "p")],
        ),
        (
            users.namespaced_cloud_profiles,
            shoot("garden-a/s", cloudProfile=profile("CloudProfile"), cloudProfileName="p"),
            [],
        ),
        (users.secret_bindings, shoot("garden-a/s", secretBindingName="b"), [Key("garden-a", "b")]),
        (users.secret_bindings, shoot("garden-a/s", credentialsBindingName="b"), []),
        (users.credentials_bindings, shoot("garden-a/s", credentialsBindingName="b"), [Key("garden-a", "b")]),
        (users.credentials_bindings, shoot("garden-a/s", secretBindingName="b"), []),
        (users.exposure_classes, shoot("garden-a/s", exposureClassName="e"), [Key("", "e")]),
        (users.exposure_classes, shoot("garden-a/s"), []),
        (users.parents, {"spec": {"parent": profile("CloudProfile")}}, [Key("", "p")]),
        (users.secrets, binding(secretRef={"name": "c"}), [Key("garden-a", "c")]),
        (users.secrets, binding(secretRef={"name": "c", "namespace": "garden-x"}), [Key("garden-x", "c")]),
        (users.secrets, binding(credentialsRef=SECRET), [Key("garden-x", "c")]),
        (users.secrets, binding(credentialsRef=IDENTITY), []),
        (users.workload_identities, binding(credentialsRef=IDENTITY), [Key("garden-a", "c")]),
        (users.workload_identities, binding(credentialsRef=SECRET), []),
        (users.workload_identities, binding(secretRef={"name": "c"}), []),
        (
            users.quotas,
            binding(quotas=[{"name": "q"}, {"name": "q", "namespace": "garden-x"}, {}]),
            [Key("garden-a", "q"), Key("garden-x", "q")],
        ),
        (
            users.controller_deployments,
            {"spec": {"deployment": {"deploymentRefs": [{"name": "d"}, {"name": "e"}]}}},
            [Key("", "d"), Key("", "e")],
        ),
        (users.controller_registrations, {"spec": {"registrationRef": {"name": "r"}}}, [Key("", "r")]),
        (users.seeds, {"spec": {"seedRef": {"name": "s"}}}, [Key("", "s")]),
    ],
)
def test_what_an_object_refers_to(references: References, obj: Object, expected: list[Key]) -> None:
    assert list(dict.fromkeys(references(obj))) == expected


FIELDS = ["metadata", "spec", "name", "namespace", "kind", "cloudProfile", "secretRef", "credentialsRef", "quotas"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_object_is_too_odd_to_be_queried(obj: Object) -> None:
    for references in (
        *(users.cloud_profiles, users.namespaced_cloud_profiles, users.secret_bindings, users.credentials_bindings),
        *(users.exposure_classes, users.parents, users.secrets, users.workload_identities, users.quotas),
        *(users.controller_deployments, users.controller_registrations, users.seeds),
    ):
        assert all(key.name for key in references(obj))


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ({"type": "a"}, ["a"]),
        ({"type": "a, b,,c"}, ["a", "b", "c"]),
        ({"type": ""}, []),
        (None, []),
    ],
)
def test_a_binding_may_name_several_providers(provider: Object | None, expected: list[str]) -> None:
    assert users.provider_types(binding(provider=provider)) == expected


def test_up_to_twenty_users_are_named_as_they_are() -> None:
    keys = [Key("garden-a", f"s{number}") for number in range(MOST_NAMED)]
    assert MOST_NAMED == 20
    assert listed(keys) == f"[{' '.join(map(str, keys))}]"
    assert listed([Key("", "a"), Key("", "b")]) == "[a b]"
    assert listed([]) == "[]"


def test_of_more_users_the_first_are_named_and_the_others_are_counted() -> None:
    keys = [Key("garden-a", f"s{number}") for number in range(MOST_NAMED + 3)]
    assert listed(keys) == f"[{' '.join(map(str, keys[:MOST_NAMED]))} ... and 3 more]"


def test_there_is_no_reason_without_users() -> None:
    assert not reason("Cannot delete", [])
    assert reason("Cannot delete", [Key("a", "b")]) == "Cannot delete: [a/b]"
