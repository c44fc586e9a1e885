"""What a Seed reports of its operations, and what has to be there before one, by tables."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.flow.graph import Snapshot
from agent.gardenlet.seed.main import backup_bucket, components
from agent.gardenlet.seed.main.resource_manager import not_held
from agent.gardenlet.seed.main.rules import prerequisites, status
from agent.gardenlet.seed.main.rules.prerequisites import PrerequisiteMissing
from components import seed_registry
from components.sample import kinds_in_seed
from components.seed_component import SeedComponent, SeedInputs
from components.seed_registry import deployed
from config.gardenlet.schema import (
    COMPONENTS,
    GardenletConfiguration,
    Images,
    Omitted,
    Resources,
)
from gardener import operations
from gardener.api.garden import CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.basic_auth import lets_in
from kit.garden_objects import garden_object
from kit.shoot_inputs import NamedSecrets
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
LATER = "2024-01-01T12:00:00Z"
BEFORE = "2024-01-01T00:00:00Z"


def _seed(*, deleting: bool = False, **spec: Any) -> Object:
    seed: Object = garden_object(SEEDS)
    meta: Object = {"name": "local", "uid": "some-uid", "generation": 7}
    return {
        **seed,
        "metadata": meta | ({"deletionTimestamp": BEFORE} if deleting else {}),
        "spec": seed["spec"] | spec,
    }


def _begun(seed: Object) -> Object:
    return status.begun(
        seed,
        gardener={"name": "g"},
        kubernetes_version="v1.30.0",
        cluster_identity="identity",
        certificate_expires=NOW + timedelta(days=1),
        resources=Resources(),
        now=NOW,
    )


# --- the status


@pytest.mark.parametrize(
    ("deleting", "of_type", "text"),
    [
        (False, "Reconcile", "Reconciliation of Seed cluster initialized."),
        (True, "Delete", "Deletion of Seed cluster in progress."),
    ],
)
def test_the_status_at_the_start(deleting: bool, of_type: str, text: str) -> None:
    assert _begun(_seed(deleting=deleting)) == {
        "lastOperation": {
            "type": of_type,
            "state": "Processing",
            "progress": 0,
            "description": text,
            "lastUpdateTime": LATER,
        },
        "gardener": {"name": "g"},
        "kubernetesVersion": "v1.30.0",
        "observedGeneration": 7,
        "clusterIdentity": "identity",
        "clientCertificateExpirationTimestamp": "2024-01-02T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("capacity", "reserved", "allocatable"),
    [
        ({"shoots": 100}, {}, {"shoots": "100"}),
        ({"shoots": 100, "volumes": "200"}, {"volumes": 3}, {"shoots": "100", "volumes": "197"}),
        ({"shoots": "2k"}, {"shoots": "500"}, {"shoots": "1500"}),
        ({"memory": "2Gi"}, {"memory": "2Gi"}, {"memory": "0Gi"}),
    ],
)
def test_what_is_reserved_can_not_be_given_away(capacity: Object, reserved: Object, allocatable: Object) -> None:
    found = status.capacities(Resources(capacity=capacity, reserved=reserved))
    assert found == {"capacity": {name: str(each) for name, each in capacity.items()}, "allocatable": allocatable}


def test_without_a_configured_capacity_the_status_keeps_its_own() -> None:
    assert not {"capacity", "allocatable"} & _begun(_seed()).keys()


def test_a_success_has_conditions_checked_again_that_were_not_bad() -> None:
    def condition(of_type: str, state: str) -> Object:
        times = {"lastTransitionTime": BEFORE, "lastUpdateTime": BEFORE}
        return {"type": of_type, "status": state, "reason": "R", "message": "m", **times}

    kinds = ("BackupBucketsReady", "ExtensionsReady", "GardenletReady", "SeedSystemComponentsHealthy", "Other")
    states = ("False", "True", "Unknown", "Progressing", "True")
    present: Object = {"conditions": list(map(condition, kinds, states)), "phase": "Ready"}
    found = status.succeeded(_seed(), present, is_repeated=False, now=NOW)
    assert found["lastOperation"]["description"] == "Seed cluster has been successfully reconciled."
    assert found["phase"] == "Ready"
    assert [each["status"] for each in found["conditions"]] == ["False", *["Progressing"] * 3, "True"]
    assert {each["reason"] for each in found["conditions"]} == {"R"}
    moments = [each["lastTransitionTime"] for each in found["conditions"]]
    assert moments == [BEFORE, LATER, LATER, BEFORE, BEFORE]
    # An operation that repeats a successful one changes none.
    repeated = status.succeeded(_seed(), present, is_repeated=True, now=NOW)
    assert repeated["conditions"] == present["conditions"]


@pytest.mark.parametrize(
    ("state", "observed", "is_repeated"),
    [("Succeeded", 2, True), ("Succeeded", 1, False), ("Error", 2, False), (None, None, False)],
)
def test_which_operations_repeat_a_successful_one(state: str | None, observed: int | None, is_repeated: bool) -> None:
    present: Object = {"lastOperation": {"state": state}, "observedGeneration": observed}
    assert operations.is_repeated({"metadata": {"generation": 2}, "status": present if state else {}}) is is_repeated


def test_progress_reports_what_the_snapshot_states() -> None:
    snapshot = Snapshot("F", 4, frozenset({"A"}), frozenset({"B"}), (), frozenset())
    found = status.progressing({"lastOperation": {"type": "Delete"}, "other": 1}, snapshot, now=NOW)
    assert found["lastOperation"] | {"lastUpdateTime": ""} == {
        "type": "Delete",
        "state": "Processing",
        "progress": 25,
        "description": "B",
        "lastUpdateTime": "",
    }
    assert found["other"] == 1


@pytest.mark.parametrize(("progress", "expected"), [(None, 40), (89, 89)])
def test_an_error_keeps_the_progress(progress: int | None, expected: int) -> None:
    present = {"lastOperation": {"type": "Reconcile", "progress": 40}}
    operation = status.failed(_seed(), present, "no", progress=progress, now=NOW)["lastOperation"]
    assert operation["state"] == "Error"
    assert operation["description"] == "no Operation will be retried."
    assert operation["progress"] == expected


# --- prerequisites


def _secret(role: str) -> Object:
    return {"metadata": {"name": f"s-{role}", "labels": {"gardener.cloud/role": role}}, "data": {"auth": "YQ=="}}


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ([], "need an internal domain secret but found none"),
        (["global-monitoring"], "need an internal domain secret but found none"),
        (["internal-domain"], "global monitoring secret not found in seed namespace"),
        (["internal-domain"] * 2, "need at most one secret with the role internal-domain but found 2"),
        (["internal-domain", *["alerting"] * 3], "need at most one secret with the role alerting but found 3"),
        (["internal-domain", *["global-monitoring"] * 2], "need at most one secret with the role global-monitoring"),
    ],
)
def test_which_secrets_the_garden_must_have(roles: list[str], text: str) -> None:
    with pytest.raises(PrerequisiteMissing, match=f"^{text}"):
        prerequisites.garden_secrets(list(map(_secret, roles)))


def test_many_default_domains_are_fine() -> None:
    roles = ["internal-domain", "default-domain", "default-domain", "global-monitoring"]
    found = prerequisites.garden_secrets(list(map(_secret, roles)))
    copy = prerequisites.monitoring_copy(found.monitoring)
    assert copy["metadata"]["name"] == "seed-s-global-monitoring"
    assert copy["data"] == {"auth": "YQ=="}


def test_the_users_of_the_monitoring_get_a_file_for_web_servers() -> None:
    data = {"username": "YWRtaW4=", "password": "c2VjcmV0"}
    copy = prerequisites.monitoring_copy({"metadata": {"name": "m"}, "data": data})
    line = base64.b64decode(copy["data"].pop("auth")).decode()
    assert line == "admin:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="
    assert lets_in(line, "admin", "secret")
    assert copy["data"] == data
    again = prerequisites.monitoring_copy({"metadata": {"name": "m"}, "data": {**data, "auth": "YQ=="}})
    assert again["data"]["auth"] == "YQ=="


@pytest.mark.parametrize(
    ("version", "is_supported"),
    [("v1.27.9", False), ("v1.28.0", True), ("1.36.3", True), ("v2.0.0", True), ("v0.9.0", False), ("unknown", True)],
)
def test_which_versions_of_kubernetes_are_supported(version: str, is_supported: bool) -> None:
    if is_supported:
        prerequisites.demand_version(version)
    else:
        text = "^the Kubernetes version of the Seed cluster must be at least 1.28$"
        with pytest.raises(PrerequisiteMissing, match=text):
            prerequisites.demand_version(version)


def test_two_wildcard_certificates_are_one_too_many() -> None:
    one = {"metadata": {"name": "one"}}
    assert prerequisites.wildcard_certificate([]) == ""
    assert prerequisites.wildcard_certificate([one]) == "one"
    with pytest.raises(PrerequisiteMissing, match="controlplane-cert but found 2"):
        prerequisites.wildcard_certificate([one, one])


def _installation(**statuses: str) -> Object:
    all_statuses = {"Installed": "True", "Healthy": "True", "Progressing": "False"} | statuses
    conditions = [{"type": each, "status": state} for each, state in all_statuses.items()]
    installation: Object = garden_object(CONTROLLER_INSTALLATIONS)
    return {**installation, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("installation", "kinds", "unready"),
    [
        (_installation(), ("ControlPlane", "DNSRecord", "Infrastructure", "Worker"), ""),
        (_installation(), ("ControlPlane", "DNSRecord"), "Infrastructure/local, Worker/local"),
        (_installation(Healthy="False"), ("ControlPlane", "DNSRecord", "Infrastructure", "Worker"), "all"),
        (_installation(Progressing="True"), ("ControlPlane", "DNSRecord", "Infrastructure", "Worker"), "all"),
        (_installation(Installed="Unknown"), ("ControlPlane", "DNSRecord", "Infrastructure", "Worker"), "all"),
    ],
)
def test_which_extensions_are_waited_for(installation: Object, kinds: tuple[str, ...], unready: str) -> None:
    if unready == "all":
        unready = "ControlPlane/local, DNSRecord/local, Infrastructure/local, Worker/local"
    registration: Object = garden_object(CONTROLLER_REGISTRATIONS)
    registration["spec"]["resources"] = [{"kind": each, "type": "local"} for each in kinds]
    text = prerequisites.unready_extensions(_seed(), installations=[installation], registrations={"r": registration})
    assert text == (f"extension controllers missing or unready: {unready}" if unready else "")


# --- what else is decided


@pytest.mark.parametrize(
    ("age", "holder", "is_held"), [(10, "me", True), (16, "me", False), (10, "", False), (0, "me", True)]
)
def test_when_a_resource_manager_is_at_work(age: int, holder: str, is_held: bool) -> None:
    renewed = format_time(NOW - timedelta(seconds=age))
    lease = {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}
    assert bool(not_held(lease, now=NOW)) is not is_held
    assert not_held(None, now=NOW)


def test_the_bucket_of_a_seed() -> None:
    backup = {"provider": "local", "secretRef": {"name": "s", "namespace": "garden"}, "providerConfig": {"a": 1}}
    wanted = backup_bucket.desired(_seed(backup=backup))
    assert wanted is not None
    assert wanted["metadata"]["name"] == "some-uid"
    assert wanted["metadata"]["annotations"] == {"gardener.cloud/operation": "reconcile"}
    assert wanted["spec"] == {
        "provider": {"type": "local", "region": "local"},
        "secretRef": {"name": "s", "namespace": "garden"},
        "seedName": "local",
        "providerConfig": {"a": 1},
    }
    assert backup_bucket.desired(_seed()) is None


def test_a_bucket_keeps_what_the_seed_does_not_report() -> None:
    backup = {"provider": "local", "region": "elsewhere", "secretRef": {"name": "s", "namespace": "garden"}}
    wanted = backup_bucket.desired(_seed(backup=backup))
    live: Object = {
        "metadata": {"name": "some-uid", "resourceVersion": "1", "annotations": {"a": "b"}, "finalizers": ["f"]},
        "spec": {"providerConfig": {"old": True}, "secretRef": {"name": "old", "namespace": "garden"}},
        "status": {"lastOperation": {}},
    }
    assert wanted is not None
    found = backup_bucket.updated(live, wanted)
    assert found["spec"] == wanted["spec"]
    assert found["metadata"]["annotations"] == {"a": "b", "gardener.cloud/operation": "reconcile"}
    assert found["metadata"]["finalizers"] == ["f"]
    assert found["metadata"]["resourceVersion"] == "1"
    assert found["status"] == {"lastOperation": {}}


def test_components_are_called_alike_in_the_configuration() -> None:
    assert {each.name for each in seed_registry.COMPONENTS} < set(COMPONENTS)


@pytest.mark.parametrize("component", seed_registry.COMPONENTS, ids=lambda each: each.name)
def test_a_component_of_a_seed_is_removed_with_the_kinds_that_it_has(component: SeedComponent) -> None:
    kinds = {each["kind"] for each in kinds_in_seed(component)}
    is_managed = component.name != "vpn-authorization-server"
    assert kinds >= ({"ManagedResource", "Secret"} if is_managed else {"Deployment", "VirtualService"})


@pytest.mark.parametrize("component", seed_registry.COMPONENTS, ids=lambda each: each.name)
def test_a_component_of_a_seed_declares_its_images(component: SeedComponent) -> None:
    used = set[str]()

    class Recorded(Images):
        def __getattribute__(self, name: str) -> Any:
            used.add(name)
            return "i"

    config = GardenletConfiguration(images=Recorded())
    seed = {"metadata": {"name": "s"}, "spec": {"ingress": {"domain": "example.com"}}}
    secrets = NamedSecrets({"plutono-admin": {"password": b"p"}})
    list(component.objects(SeedInputs(config=config, seed=seed, secrets=secrets, served=component.asks_for)))
    assert used == set(component.images)


def test_which_components_are_deployed() -> None:
    always = set(COMPONENTS) - {each.name for each in seed_registry.COMPONENTS if each.images} - {"istio"}
    assert deployed(GardenletConfiguration()) == always
    some = Images(etcd_druid="i", vpa_updater="i")
    assert deployed(GardenletConfiguration(images=some)) == always | {"etcd-druid"}
    local = GardenletConfiguration(omit=Omitted(seed=COMPONENTS[1:]))
    assert deployed(local) == {COMPONENTS[0]}
    assert set(components.left_out(local)) == {*COMPONENTS[1:], *components.NOT_BUILT, "reserve-excess-capacity"}
