"""What ControllerInstallations are to be like: hashes, versions, names, and which one counts."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.controller_registration.installations.controller import installation_triggers
from agent.controller_manager.controller_registration.installations.desired import (
    POD_SECURITY,
    Deployment,
    Desired,
    chosen,
    hash_of,
    names_for,
)
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, key
from kube.paths import with_value
from kube.runtime.cache import Change

SEED: Object = {"metadata": {"name": "seed", "resourceVersion": "5"}, "spec": {"a": 1}}
REGISTRATION: Object = {"metadata": {"name": "r", "resourceVersion": "6"}, "spec": {"resources": []}}
DEPLOYMENT = Deployment.of({"metadata": {"name": "d", "resourceVersion": "7"}, "helm": {"rawChart": "YQ=="}})
DESIRED = Desired(SEED, REGISTRATION, ("d", DEPLOYMENT))


def stored(desired: Desired = DESIRED, **metadata: Any) -> Object:
    obj = desired.new("r-12345")
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "100", **metadata}}


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def another(desired: Desired, *, seed: Object = SEED, registration: Object = REGISTRATION) -> Desired:
    return Desired(seed, registration, desired.deployment)


def test_a_new_one() -> None:
    new = DESIRED.new("r-12345")
    assert new["spec"] == {
        "seedRef": {"name": "seed", "resourceVersion": "5"},
        "registrationRef": {"name": "r", "resourceVersion": "6"},
        "deploymentRef": {"name": "d", "resourceVersion": "7"},
    }
    labels = new["metadata"]["labels"]
    assert labels == {
        "seed-spec-hash": hash_of({"a": 1}),
        "registration-spec-hash": hash_of({"resources": []}),
        "deployment-hash": DEPLOYMENT.hash,
    }
    assert all(len(value) == 16 for value in labels.values())
    assert "annotations" not in new["metadata"]
    assert DESIRED.patch(stored()) is None


def test_versions_move_with_hashes_only() -> None:
    newer = with_value(SEED, ("metadata", "resourceVersion"), "50")
    assert another(DESIRED, seed=newer).patch(stored()) is None
    changed = with_value(newer, ("spec", "a"), 2)
    assert another(DESIRED, seed=changed).patch(stored()) == {
        "metadata": {"resourceVersion": "100", "labels": {"seed-spec-hash": hash_of({"a": 2})}},
        "spec": {"seedRef": {"name": "seed", "resourceVersion": "50"}},
    }


def test_a_deployment_goes_and_comes() -> None:
    without = Desired(SEED, REGISTRATION, None)
    gone = merged(stored(), without.patch(stored()))
    assert "deploymentRef" not in gone["spec"]
    assert "deployment-hash" not in gone["metadata"]["labels"]
    back = merged(gone, DESIRED.patch(gone))
    assert back["spec"] == stored()["spec"]


def test_pod_security_is_copied_and_removed() -> None:
    annotated = with_value(REGISTRATION, ("metadata", "annotations"), {POD_SECURITY: "baseline", "else": "x"})
    desired = another(DESIRED, registration=annotated)
    assert desired.new("n")["metadata"]["annotations"] == {POD_SECURITY: "baseline"}
    patched = merged(stored(), desired.patch(stored()))
    assert patched["metadata"]["annotations"] == {POD_SECURITY: "baseline"}
    assert DESIRED.patch(patched)["metadata"]["annotations"] == {POD_SECURITY: None}  # type: ignore[index]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "labels"), {}),
        (("spec", "deploymentRef"), None),
        (("spec", "deploymentRef", "name"), "other"),
        (("spec", "seedRef", "resourceVersion"), None),
        (("metadata", "annotations"), {POD_SECURITY: "privileged"}),
    ],
)
def test_what_is_changed_by_hand_is_seen_and_corrected(path: tuple[str, ...], value: Any) -> None:
    changed = with_value(copy.deepcopy(stored()), path, value)
    assert installation_triggers(Change(Key("", "r-12345"), old=stored(), new=changed, initial=False))
    patch = DESIRED.patch(changed)
    if patch is not None:  # without its version, a reference is as good as before
        right = merged(changed, patch)
        assert DESIRED.patch(right) is None


def test_a_status_is_no_trigger() -> None:
    reported = {**stored(), "status": {"conditions": [{"type": "Healthy", "status": "True"}]}}
    assert not installation_triggers(Change(Key("", "r-12345"), old=stored(), new=reported, initial=False))


def test_deployments_of_other_types() -> None:
    annotations = {"migration.controllerdeployment.gardener.cloud/type": "custom"}
    custom = Deployment.of({"metadata": {"name": "d", "annotations": annotations}})
    noted = Deployment.of({"metadata": {"name": "d", "annotations": {**annotations, "note": "x"}}})
    assert custom.hash == noted.hash != Deployment.of({"metadata": {"name": "d"}}).hash


@given(
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True).filter(
        lambda n: not dns_subdomain_problems(n)
    )
)
def test_names_are_names(registration: str) -> None:
    names = list(names_for(registration, "seed"))
    assert len(set(names)) == len(names) > 1
    assert names == list(names_for(registration, "seed"))
    assert not any(dns_subdomain_problems(name) for name in names)
    assert names[0] != next(names_for(registration, "other"))


def test_the_one_that_is_kept_up_to_date_counts() -> None:
    by_hand = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": stored()["spec"]}
    ours = stored(name="z", creationTimestamp="2026-02-01T00:00:00Z")
    going = stored(name="b", creationTimestamp="2026-01-01T00:00:00Z", deletionTimestamp="2026-03-01T00:00:00Z")
    assert [key(each).name for each in chosen([by_hand, going, ours]).values()] == ["z"]
    assert [key(each).name for each in chosen([going, by_hand]).values()] == ["a"]
    assert [key(each).name for each in chosen([going]).values()] == ["b"]


@pytest.mark.parametrize("levels", [300, 1000])
def test_what_nests_deeply_has_a_hash_as_well(levels: int) -> None:
    def nested(value: Any) -> Any:
        for _ in range(levels):
            value = {"a": value}
        return value

    assert hash_of(nested(1)) == hash_of(nested(1)) != hash_of(nested(2))
