"""When ManagedSeeds are looked at, what their gardenlets get, and how many of these are restarted at a time."""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from agent.gardenlet.bootstrap.rules.certificate import Life
from agent.gardenlet.common.image_overwrites import image_of
from agent.gardenlet.managed_seeds.installation.rules import bootstrap, values
from agent.gardenlet.managed_seeds.installation.rules.rollout import check_failure
from agent.gardenlet.managed_seeds.installation.target import is_rolled_out
from agent.gardenlet.managed_seeds.main.rollouts import Rollouts
from agent.gardenlet.managed_seeds.main.rules import gardenlet as rules
from agent.gardenlet.managed_seeds.main.rules.timing import Timing
from config.gardenlet import decode
from config.gardenlet.controllers import ManagedSeed as Settings
from gardener.api.garden import MANAGED_SEEDS
from kube.objects import Key, Object
from kube.yaml import Budget, load
from process.configuration.fields import as_document

NOW = datetime(2026, 5, 1, tzinfo=UTC)
WAITING_METRIC = "gardenlet_managed_seeds_waiting_for_rollout"
A, B, C = (Key("garden", name) for name in "abc")


def managed_seed(**spec: Any) -> Object:
    return {"metadata": {"name": "foo", "namespace": "garden"}, "spec": {"shoot": {"name": "s"}, **spec}}


def found(generation: int, observed: int | None = 0, **meta: Any) -> Object:
    return {
        "metadata": {"generation": generation, **meta},
        "status": {"observedGeneration": observed},
        "operation": {"sequence": meta.pop("sequence", 0)},
    }


# --- its Shoot


@pytest.mark.parametrize(
    ("known", "kind", "state", "errors", "is_again"),
    [
        ("True", "Reconcile", "Processing", [], True),
        ("True", "Reconcile", "Succeeded", [], False),
        ("True", "Reconcile", "Error", [], False),
        ("True", "Reconcile", "Processing", [{"description": "failed"}], False),
        ("True", "Migrate", "Processing", [], False),
        ("False", "Reconcile", "Processing", [], False),
        (None, "Create", "Processing", [], False),
    ],
)
def test_a_shoot_that_is_reconciled_again_is_no_news(
    known: str | None, kind: str, state: str, errors: list[Object], is_again: bool
) -> None:
    obj = managed_seed() | {"status": {"conditions": [{"type": "ShootReconciled", "status": known}] if known else []}}
    shoot: Object = {"status": {"lastOperation": {"type": kind, "state": state}, "lastErrors": errors}}
    assert rules.is_reconciled_again(obj, shoot) is is_again


# --- timing


def latest(jitters: bool) -> Timing:
    return Timing(Settings(sync_jitter_period=300.0, jitter_updates=jitters), uniform=lambda _, most: most)


@pytest.mark.parametrize(
    ("obj", "jitters", "delay"),
    [
        (found(1, None), True, 0.0),
        (found(1, 1), True, 300.0),
        (found(4, 4, deletionTimestamp="2026-05-01T00:00:00Z"), True, 0.0),
        (found(4, 3), False, 0.0),
        (found(4, 3), True, 300.0),
        (found(4, 4), False, 300.0),
        (found(4, 4, annotations={"gardener.cloud/operation": "renew-kubeconfig"}), True, 0.0),
    ],
)
def test_after_a_start_children_are_looked_at_over_a_time_but_for_those_that_are_new_or_go(
    obj: Object, jitters: bool, delay: float
) -> None:
    assert latest(jitters).found(obj) == delay


def test_a_change_of_the_spec_may_be_spread_and_what_a_user_requests_is_not() -> None:
    old, new = found(4, 4), found(5, 4)
    assert latest(False).changed(old, new) == 0.0
    assert latest(True).changed(old, new) == 300.0
    assert latest(True).changed(old, found(5, 4, sequence=1)) == 0.0
    assert latest(True).changed(old, found(5, 4, deletionTimestamp="2026-05-01T00:00:00Z")) == 0.0
    assert latest(True).changed(new, found(5, 5)) is None
    assert latest(True).changed(new, new) is None


# --- roll-outs


class Clock:
    now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_gardenlets_are_restarted_few_at_a_time_and_one_that_hangs_does_not_hold_up_all_others() -> None:
    clock = Clock()
    rollouts = Rollouts(2, timedelta(hours=1), clock)
    assert [rollouts.admit(each) for each in (A, B, C, A)] == [True, True, False, True]
    assert rollouts.waiting == 1
    rollouts.end(A)
    assert rollouts.admit(C)
    assert rollouts.waiting == 0
    assert not rollouts.admit(A)
    clock.now += timedelta(hours=1)
    assert rollouts.admit(A)


def test_of_fifty_that_are_changed_at_once_five_are_restarted_at_a_time_and_the_others_are_counted() -> None:
    rollouts = Rollouts(Settings().max_concurrent_rollouts, timedelta(hours=1), Clock())
    left, shown = [Key("garden", f"s{number}") for number in range(50)], []
    while left:
        begun = [each for each in left if rollouts.admit(each)]
        shown.append((len(begun), rollouts.waiting, REGISTRY.get_sample_value(WAITING_METRIC)))
        for each in begun:
            rollouts.end(each)
            left.remove(each)
    assert shown == [(5, waiting, waiting) for waiting in range(45, -1, -5)]


@pytest.mark.parametrize(
    ("status", "is_so"),
    [
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        ({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, False),
        ({}, False),
    ],
)
def test_a_gardenlet_is_rolled_out_when_all_of_its_pods_are_new_and_serve(status: Object, is_so: bool) -> None:
    assert is_rolled_out({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}) is is_so


def test_a_check_that_fails_in_new_pods_is_reported_with_its_words() -> None:
    def pod(name: str, status: Object, **meta: Any) -> Object:
        return {"metadata": {"name": name, **meta}, "status": status}

    failed = {"name": "check-configuration", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    failed["lastState"] = {"terminated": {"exitCode": 1, "message": "Error: unknown kind\n"}}
    assert "pod b, container check-configuration: Error: unknown kind" in check_failure(
        [pod("a", {}), pod("b", {"initContainerStatuses": [failed]})]
    )
    assert not check_failure([pod("b", {"initContainerStatuses": [failed]}, deletionTimestamp="2026-05-01T00:00:00Z")])
    pulls = {"name": "gardenlet", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
    assert "container gardenlet: not found" in check_failure([pod("c", {"containerStatuses": [pulls]})])


# --- configuration


PARENT: Object = {
    "logLevel": "info",
    "controllers": {"shoot": {"concurrentSyncs": 20, "syncPeriod": "1h"}},
    "featureGates": {"A": True},
    "resources": {"capacity": {"shoots": 50}, "reserved": {"shoots": 5}},
    "gardenClientConnection": {"kubeconfig": "/parent", "bootstrapKubeconfig": {"name": "b"}, "qps": 5},
    "seedClientConnection": {"kubeconfig": "/seed"},
    "seedConfig": {"metadata": {"name": "parent"}},
}
CHILD: Object = {
    "controllers": {"shoot": {"concurrentSyncs": 5}},
    "featureGates": {"B": True},
    "resources": {"capacity": {"shoots": 250}},
    "seedConfig": {"metadata": {"labels": {"x": "y"}}, "spec": {"a": 1}},
    "later": {"unknown": 12345678901234567},
}


def test_a_child_has_what_its_parent_has_unless_it_specifies_otherwise_and_none_of_its_credentials() -> None:
    assert rules.configuration(managed_seed(gardenlet={"config": CHILD}), parent=PARENT) == {
        "logLevel": "info",
        "controllers": {"shoot": {"concurrentSyncs": 5, "syncPeriod": "1h"}},
        "featureGates": {"A": True, "B": True},
        "resources": {"capacity": {"shoots": 250}, "reserved": {"shoots": 5}},
        "gardenClientConnection": {"qps": 5},
        "seedClientConnection": {},
        "seedConfig": {"metadata": {"name": "foo", "labels": {"x": "y"}}, "spec": {"a": 1}},
        "later": {"unknown": 12345678901234567},
    }


def test_without_a_merge_a_child_has_its_own_configuration_with_the_name_of_its_seed() -> None:
    found = rules.configuration(managed_seed(gardenlet={"config": CHILD, "mergeWithParent": False}), parent=PARENT)
    assert found == {**CHILD, "seedConfig": {"metadata": {"name": "foo", "labels": {"x": "y"}}, "spec": {"a": 1}}}


@pytest.mark.parametrize("gardenlet", [{}, {"config": {}}, {"config": "text"}])
def test_without_the_configuration_of_a_seed_nothing_is_deployed(gardenlet: Object) -> None:
    with pytest.raises(rules.Undeployable, match=r"spec\.gardenlet\.config\.seedConfig"):
        rules.configuration(managed_seed(gardenlet=gardenlet), parent=PARENT)


def test_a_child_that_may_not_bootstrap_needs_a_kubeconfig_of_its_own() -> None:
    child = managed_seed(gardenlet={"bootstrap": "None", "config": CHILD})
    with pytest.raises(rules.Undeployable, match="it does not inherit that of its parent"):
        rules.demand_way_in(child, rules.configuration(child, parent=PARENT))
    rules.demand_way_in(child, {"gardenClientConnection": {"kubeconfig": "/mounted"}})


def test_what_a_release_does_not_know_is_handed_on_as_it_is() -> None:
    text = values.written(CHILD)
    assert load(text, budget=Budget(1000)) == CHILD
    assert "12345678901234567" in text
    assert load(values.written({"a": "1e3", "b": "on", "c": "0x1f"}), budget=Budget(9)) == {
        "a": "1e3",
        "b": "on",
        "c": "0x1f",
    }


def test_what_a_parent_hands_on_is_its_whole_configuration_as_a_file_would_have_it() -> None:
    text = """
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
controllers: {shoot: {syncPeriod: 90m, dnsEntryTTLSeconds: 60}, networkPolicy: {additionalNamespaceSelectors: [{matchLabels: {a: b}}]}}
gardenClientConnection: {kubeconfigSecret: {name: a, namespace: b}}
resources: {capacity: {shoots: 5}}
omit: {seed: [istio]}
"""
    config = decode(text).config
    document = as_document(config)
    shoot = document["controllers"]["shoot"]
    assert (shoot["syncPeriod"], shoot["retryDuration"], shoot["dnsEntryTTLSeconds"]) == ("1h30m0s", "12h0m0s", 60)
    assert "progressReportPeriod" not in shoot
    assert document["resources"] == {"capacity": {"shoots": 5}}
    assert decode(values.written(document)).config == config


# --- values


@pytest.mark.parametrize(
    ("written", "image"),
    [
        ("r.example.com:5000/a/b:v1", {"repository": "r.example.com:5000/a/b", "tag": "v1"}),
        ("r.example.com:5000/a/b", {"repository": "r.example.com:5000/a/b"}),
        ("a@sha256:12", {"repository": "a", "digest": "sha256:12"}),
        ("a:v1@sha256:12", {"repository": "a", "tag": "v1", "digest": "sha256:12"}),
    ],
)
def test_the_image_of_a_parent_as_values(written: str, image: Object) -> None:
    assert image_of(written) == image


def test_a_child_runs_the_image_of_its_parent_but_for_what_it_names_itself() -> None:
    parent = {"repository": "a", "tag": "v1", "digest": "sha256:12"}
    assert values.with_image({"image": {"pullPolicy": "Always"}}, parent)["image"] == {**parent, "pullPolicy": "Always"}
    assert values.with_image({"image": {"tag": "v2"}}, parent)["image"] == {"repository": "a", "tag": "v2"}


def test_a_child_finds_its_api_server_by_the_domain_of_its_shoot() -> None:
    def env(deployment: Object, domain: str) -> Any:
        shoot = {"metadata": {"name": "s"}, "spec": {"dns": {"domain": domain}}}
        child = managed_seed(gardenlet={"deployment": deployment})
        return rules.deployment(child, shoot, image={}, others={}, backup=None).get("env")

    own = [{"name": "KUBERNETES_SERVICE_HOST", "value": "x"}]
    assert env({}, "d.example.com") == [{"name": "KUBERNETES_SERVICE_HOST", "value": "api.d.example.com"}]
    assert env({"env": own}, "d.example.com") == own
    assert env({}, "") is None


def test_a_child_uses_the_images_that_its_parent_uses_instead_of_configured_ones() -> None:
    others = {"imageVectorOverwrite": "images: []"}
    found = rules.deployment(managed_seed(), {"metadata": {"name": "s"}}, image={}, others=others, backup=None)
    assert values.values(found, {})["imageVectorOverwrite"] == "images: []"


def test_without_credentials_of_its_shoot_a_seed_is_not_made() -> None:
    with pytest.raises(rules.Undeployable, match="are nil for the Shoot: garden/s; set one of them"):
        rules.binding_of({"metadata": {"name": "s", "namespace": "garden"}, "spec": {}})


def test_new_credentials_for_backups_restart_a_child() -> None:
    backup = {"metadata": {"name": "b", "namespace": "garden"}, "data": {"foo": "YmFy"}}
    found = rules.deployment(managed_seed(), {"metadata": {"name": "s"}}, image={}, others={}, backup=backup)
    assert found["podAnnotations"] == {"checksum/seed-backup-secret": "b-bd142ccf"}


@pytest.mark.parametrize(
    ("data", "checksum"), [({}, "e3b0c442"), ({"foo": "YmFy"}, "bd142ccf"), ({"z": "Mg==", "a": "MQ=="}, "33b67563")]
)
def test_the_checksum_of_credentials_is_upstreams(data: Object, checksum: str) -> None:
    assert rules.checksum(data) == checksum


# --- credentials


def test_a_bootstrap_token_is_known_by_whose_it_is_and_used_until_it_is_over() -> None:
    assert bootstrap.token_name(Key("garden", "foo")) == "bootstrap-token-60ec02"
    secret = bootstrap.token_secret(MANAGED_SEEDS, Key("garden", "foo"), secret="s" * 16, group="g", now=NOW)
    assert bootstrap.token_of(secret, NOW + timedelta(hours=23), group="g") == f"60ec02.{'s' * 16}"
    assert not bootstrap.token_of(secret, NOW + timedelta(hours=24), group="g")
    assert not bootstrap.token_of(secret, NOW, group="other")
    assert bootstrap.secret_part(secret) == "s" * 16
    assert not bootstrap.token_of({"data": {"token-id": "\xff"}}, NOW, group="")
    assert b64decode(secret["data"]["auth-extra-groups"]) == b"g"
    plain = bootstrap.token_secret(MANAGED_SEEDS, Key("garden", "foo"), secret="s" * 16, group="", now=NOW)
    assert "auth-extra-groups" not in plain["data"]


def test_a_kubeconfig_is_recreated_when_its_certificate_is_over_not_when_the_seed_is_behind() -> None:
    seed = {"status": {"clientCertificateExpirationTimestamp": "2026-04-30T00:00:00Z"}}
    old, new = (Life(NOW - timedelta(days=9), NOW + timedelta(days=days), b"") for days in (-1, 1))
    assert bootstrap.has_expired(seed, None, NOW)
    assert bootstrap.has_expired(seed, old, NOW)
    assert not bootstrap.has_expired(seed, new, NOW)
    assert not bootstrap.has_expired({"status": {}}, None, NOW)
    assert not bootstrap.has_expired(None, None, NOW)
