"""What ControllerInstallations are to be like: hashes, versions, names, and which one counts."""

import copy
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.controller_registration.installations.controller import installation_triggers
from agent.controller_manager.controller_registration.installations.desired import (
    POD_SECURITY,
    Deployment,
    Desired,
    chosen,
    digest_of,
    hash_of,
    names_for,
)
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, key
from kube.paths import with_value
from kube.runtime.cache import Change

RECORDED = Path(__file__).parents[2] / "conformance" / "gardenlet"
SEED: Object = {"metadata": {"name": "seed", "resourceVersion": "5"}, "spec": {"a": "1", "zones": ["a"]}}
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
        "seed-spec-hash": hash_of({"a": "1"}),
        "registration-spec-hash": hash_of({"resources": []}),
        "deployment-hash": DEPLOYMENT.hash,
    }
    assert all(len(value) == 16 for value in labels.values())
    assert "annotations" not in new["metadata"]
    assert DESIRED.patch(stored()) is None


NEWER_SEED: Object = with_value(SEED, ("metadata", "resourceVersion"), "50")
NEWER_REGISTRATION: Object = with_value(REGISTRATION, ("metadata", "resourceVersion"), "60")
OTHER_LIST = [{"kind": "Extension", "type": "x"}]
SEED_REF = {"seedRef": {"name": "seed", "resourceVersion": "50"}}
REGISTRATION_REF = {"registrationRef": {"name": "r", "resourceVersion": "60"}}


def test_versions_move_with_the_content_only() -> None:
    assert another(DESIRED, seed=NEWER_SEED).patch(stored()) is None
    changed = with_value(NEWER_SEED, ("spec", "a"), "2")
    assert another(DESIRED, seed=changed).patch(stored()) == {
        "metadata": {"resourceVersion": "100", "labels": {"seed-spec-hash": hash_of({"a": "2"})}},
        "spec": SEED_REF,
    }


@pytest.mark.parametrize(
    ("seed", "registration", "is_known", "changes"),
    [
        (SEED, NEWER_REGISTRATION, True, None),  # only its metadata
        (SEED, NEWER_REGISTRATION, False, REGISTRATION_REF),  # its content may be another
        (SEED, with_value(NEWER_REGISTRATION, ("spec", "resources"), OTHER_LIST), True, REGISTRATION_REF),
        (NEWER_SEED, REGISTRATION, False, None),  # a heartbeat
        (with_value(NEWER_SEED, ("spec", "zones"), ["a", "b"]), REGISTRATION, True, SEED_REF),
    ],
)
def test_what_the_hashes_leave_out_is_found_by_what_was_seen(
    seed: Object, registration: Object, is_known: bool, changes: Object | None
) -> None:
    seen = DESIRED.digests() if is_known else {}
    patch = Desired(seed, registration, DESIRED.deployment, seen).patch(stored())
    assert patch == (changes and {"metadata": {"resourceVersion": "100"}, "spec": changes})


def test_numbers_in_the_values_of_a_chart_count() -> None:
    def deployment(replicas: int, version: str) -> Deployment:
        helm = {"rawChart": "YQ==", "values": {"replicas": replicas}}
        return Deployment.of({"metadata": {"name": "d", "resourceVersion": version}, "helm": helm})

    before = Desired(SEED, REGISTRATION, ("d", deployment(1, "7")))
    after = Desired(SEED, REGISTRATION, ("d", deployment(2, "70")), before.digests())
    assert after.patch(stored(before)) == {
        "metadata": {"resourceVersion": "100"},
        "spec": {"deploymentRef": {"name": "d", "resourceVersion": "70"}},
    }


def test_an_installation_of_the_original_is_not_written() -> None:
    """Recorded of release v1.104.3; the hash of the ControllerDeployment is of a chart that is not recorded."""
    recorded = yaml.safe_load((RECORDED / "installation.yaml").read_text())
    deployment = Deployment(recorded["labels"]["deployment-hash"], "", "302")
    desired = Desired(recorded["seed"], recorded["registration"], ("provider-local", deployment))
    installation = desired.new("provider-local-qvf5f")
    assert installation["metadata"]["labels"] == recorded["labels"]
    meta = {**installation["metadata"], "resourceVersion": "551"}
    assert desired.patch({**installation, "metadata": meta}) is None


@pytest.mark.parametrize(
    ("content", "as_if"),
    [
        ({"a": "x", "b": "y"}, {"b": "y", "a": "x"}),
        ({"a": "x", "b": [1, "z"], "c": 7, "d": 1.5, "e": None}, {"a": "x"}),
        ({"a": True}, {"a": "true"}),
        ({"a": False}, {"a": "false"}),
        ({"a": {}}, {"z": {"q": [1]}}),  # names do not count
    ],
)
def test_what_hashes_are_of(content: Object, as_if: Object) -> None:
    assert hash_of(content) == hash_of(as_if)


def test_hashes_of_hashes() -> None:
    def sha256(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    inner = sha256(sha256("y") + sha256("true"))
    assert hash_of({"b": {"c": "y", "d": True}, "a": "x"}) == sha256(sha256("x") + inner)[:16]
    helm, absent = sha256(sha256("YQ==")), sha256("")  # of type and providerConfig
    assert DEPLOYMENT.hash == sha256(helm + absent + absent)[:16]


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

    assert hash_of(nested("x")) == hash_of(nested("x")) != hash_of(nested("y"))
    assert digest_of(nested(1)) == digest_of(nested(1)) != digest_of(nested(2))
