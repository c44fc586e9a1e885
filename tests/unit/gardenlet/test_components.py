"""What components of a seed depend on; `tests/conformance/test_seed_objects.py` compares them with the original's."""

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from components import (
    cluster_identity,
    dashboards,
    etcd_druid,
    kube_state_metrics,
    namespaces,
    prometheus,
    resource_manager,
    system,
)
from components.parts import deployment_unready
from components.seed_component import SeedInputs
from config.gardenlet.schema import GardenletConfiguration, Images
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from gardener.references import references
from kit.objects import config_map, deployment
from kit.shoot_inputs import NamedSecrets
from kube.objects import Object, labels
from kube.paths import at

BUNDLE = "-----BEGIN CERTIFICATE-----\n"


def seed_inputs(seed: Object | None = None, **config: Any) -> SeedInputs:
    known = seed or {"metadata": {"name": "meadow"}}
    return SeedInputs(config=GardenletConfiguration(**config), seed=known, secrets=NamedSecrets())


def manager(**values: Any) -> dict[tuple[str, str], Object]:
    made = resource_manager.Values(
        **{"image": "i", "server_secret": "server", "ca_bundle": BUNDLE, "zones": ("a",), **values}
    )
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in resource_manager.objects(made)}


def its_deployment(**values: Any) -> Object:
    return manager(**values)["Deployment", resource_manager.NAME]


def contents(component: Sequence[Object]) -> list[Object]:
    secret, _ = component
    return [item.object for item in decode_secrets([data_of(secret)]).objects]


def test_a_changed_configuration_rolls_the_resource_manager_out() -> None:
    selector = {"matchLabels": {"served": "elsewhere"}}
    before, after = its_deployment(), its_deployment(additional_namespaces=[selector])
    assert {name.name for name in references(before)} & {"server", "kube-root-ca.crt"}
    assert before["spec"]["template"]["spec"]["volumes"] != after["spec"]["template"]["spec"]["volumes"]
    assert labels(before["spec"]["template"]) != labels(after["spec"]["template"])
    assert its_deployment() == before


def test_spread_pods_are_those_of_the_selector_and_of_this_template() -> None:
    template = its_deployment()["spec"]["template"]
    (constraint,) = template["spec"]["topologySpreadConstraints"]
    counted = constraint["labelSelector"]["matchLabels"]
    assert counted.items() <= labels(template).items()
    assert resource_manager.LABELS.items() <= counted.items()


def test_webhooks_are_reached_by_a_url_where_there_is_one() -> None:
    kind = "MutatingWebhookConfiguration", resource_manager.NAME
    (by_service, *_), (by_url, *_) = (manager(url=url)[kind]["webhooks"] for url in ("", "https://127.0.0.1:1"))
    assert by_service["clientConfig"]["service"]["namespace"] == "garden"
    assert by_url["clientConfig"] == {
        "url": "https://127.0.0.1:1/webhooks/invalidate-service-account-token-secret",
        "caBundle": base64.b64encode(BUNDLE.encode()).decode(),
    }


def test_its_pods_are_left_out_by_its_own_webhooks() -> None:
    """Else it could not be started once its last pod is gone."""
    configuration = manager()["MutatingWebhookConfiguration", resource_manager.NAME]
    pod = labels(its_deployment()["spec"]["template"])
    for webhook in configuration["webhooks"]:
        if webhook["rules"][0]["resources"] == ["pods"]:
            left_out = {"key": "app", "operator": "NotIn", "values": [pod["app"]]}
            assert left_out in webhook["objectSelector"]["matchExpressions"]


RESERVED = {"resources": {"cpu": "2", "memory": "6Gi"}}
TAINTED = {**RESERVED, "nodeSelector": {"pool": "x"}, "tolerations": [{"key": "x", "operator": "Exists"}]}


def test_room_is_kept_by_one_deployment_for_each_reservation() -> None:
    setting = {"settings": {"excessCapacityReservation": {"configs": [RESERVED, TAINTED]}}}
    inputs = seed_inputs({"metadata": {"name": "meadow"}, "spec": setting}, images=Images(pause="pause"))
    made = contents([*system.COMPONENT.objects(inputs)])
    first, second = (obj for obj in made if obj["kind"] == "Deployment")
    assert [first["metadata"]["name"], second["metadata"]["name"]] == [
        "reserve-excess-capacity-0",
        "reserve-excess-capacity-1",
    ]
    assert first["spec"]["selector"] != second["spec"]["selector"]
    pod = second["spec"]["template"]["spec"]
    assert (pod["nodeSelector"], pod["tolerations"]) == (TAINTED["nodeSelector"], TAINTED["tolerations"])
    assert pod["containers"][0]["resources"]["requests"] == RESERVED["resources"]
    classes = {obj["metadata"]["name"] for obj in made if obj["kind"] == "PriorityClass"}
    assert pod["priorityClassName"] in classes


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        (None, 0),
        ({"configs": [RESERVED]}, 1),
        ({"enabled": True, "configs": [RESERVED, TAINTED]}, 2),
        ({"enabled": False, "configs": [RESERVED]}, 0),
    ],
)
def test_what_a_seed_keeps_free(setting: Object | None, count: int) -> None:
    seed = {"metadata": {"name": "meadow"}, "spec": {"settings": {"excessCapacityReservation": setting}}}
    made = contents([*system.COMPONENT.objects(seed_inputs(seed, images=Images(pause="pause")))])
    assert [each["kind"] for each in made].count("Deployment") == count


def test_an_identity_that_is_not_the_seeds_own_stays() -> None:
    (own,) = contents([*cluster_identity.COMPONENT.objects(replace(seed_inputs(), identity="x"))])
    assert (cluster_identity.identity_in(own), cluster_identity.is_of_others(own)) == ("x", False)
    shoots = config_map("kube-system/cluster-identity", {"cluster-identity": "y", "origin": "shoot"})
    assert (cluster_identity.identity_in(shoots), cluster_identity.is_of_others(shoots)) == ("y", True)
    assert (cluster_identity.identity_in(None), cluster_identity.is_of_others(None)) == ("", False)


def test_the_namespace_names_the_zones() -> None:
    garden, _ = namespaces.objects(zones=["a", "b"])
    assert at(garden, "metadata", "annotations", "high-availability-config.resources.gardener.cloud/zones") == "a,b"


def test_a_deployment_is_ready_when_it_is_available_and_rolled_out() -> None:
    assert deployment_unready(None) == "it does not exist"
    live = deployment("d")
    assert "Available" in deployment_unready(live)
    rolled = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    live["status"] = {"conditions": [{"type": "Available", "status": "True"}, rolled]}
    assert deployment_unready(live) == ""
    assert "outdated" in deployment_unready({**live, "metadata": {**live["metadata"], "generation": 1}})
    live["status"]["conditions"][1] = {**rolled, "reason": "ReplicaSetUpdated", "message": "1 of 2"}
    assert deployment_unready(live) == "1 of 2"
    assert deployment_unready({**live, "status": {"conditions": {}}})


def arguments(component: Sequence[Object]) -> list[str]:
    (found,) = (obj for obj in contents(component) if obj["kind"] == "Deployment")
    texts: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return texts


def test_the_operator_of_etcds_is_configured_by_the_gardenlets_file() -> None:
    config = {
        "etcdController": {"workers": 3},
        "backupCompactionController": {"enableBackupCompaction": True, "activeDeadlineDuration": "3h"},
        "featureGates": {"B": False, "A": True},
    }
    found = arguments([*etcd_druid.COMPONENT.objects(seed_inputs(etcd_config=config))])
    assert {
        "--workers=3",
        "--custodian-workers=10",
        "--enable-backup-compaction=true",
        "--active-deadline-duration=3h",
        "--feature-gates=A=true,B=false",
    } <= {*found}


def test_metrics_of_autoscalers_are_those_that_are_let_through() -> None:
    made = [*kube_state_metrics.COMPONENT.objects(seed_inputs())]
    (state,) = (obj["data"] for obj in contents(made) if obj["kind"] == "ConfigMap")
    (resource,) = yaml.safe_load(state["custom-resource-state.yaml"])["spec"]["resources"]
    names = {f"{resource['metricNamePrefix']}_{each['name']}" for each in resource["metrics"]}
    (allowed,) = (text for text in arguments(made) if text.startswith("--metric-allowlist="))
    let_through = {each.strip("^$") for each in allowed.partition("=")[2].split(",")}
    assert {name for name in let_through if "customresource" in name} == names


# --- monitoring


def servers(server: str, **values: Any) -> dict[tuple[str, str], Object]:
    made = prometheus.Values(**{"image": "i", "seed": "meadow", **values})
    found = contents(prometheus.objects(server, made))
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in found}


@pytest.mark.parametrize(
    ("smallest", "expected"), [(0, "10Gi"), (1 << 30, "10Gi"), (10 << 30, "10Gi"), (20 << 30, str(20 << 30))]
)
def test_volumes_are_as_large_as_the_infrastructure_makes_them(smallest: int, expected: str) -> None:
    spec = servers("cache", volume=smallest)["Prometheus", "cache"]["spec"]
    assert at(spec, "storage", "volumeClaimTemplate", "spec", "resources", "requests", "storage") == expected


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("quay.io/prometheus/prometheus:v2.54.1", "v2.54.1"),
        ("localhost:5000/prometheus:v3.0.0-rc.1@sha256:0123", "v3.0.0-rc.1"),
        ("localhost:5000/prometheus@sha256:0123", None),
        ("prometheus:latest", None),
    ],
)
def test_the_operator_learns_the_version_from_the_image(image: str, version: str | None) -> None:
    assert servers("seed", image=image)["Prometheus", "seed"]["spec"].get("version") == version


def test_series_that_rules_and_dashboards_read_are_there() -> None:
    """Those that are computed by rules, of the servers that dashboards and other servers read."""
    computed = {
        rule["record"]
        for server in prometheus.SERVERS
        for (kind, _), obj in servers(server).items()
        if kind == "PrometheusRule"
        for rule in obj["spec"]["groups"][0]["rules"]
        if "record" in rule
    }
    requested = " ".join(
        [
            *dashboards.files().values(),
            *(str(obj["spec"]) for server in prometheus.SERVERS for obj in servers(server).values() if "spec" in obj),
        ]
    )
    named = set(re.findall(r"\b(?:namespace|namespace_pod|seed|metering):[a-z0-9_]+(?::[a-z0-9_]+)?", requested))
    assert named <= computed
    assert len(named) > 20


def test_exported_series_that_are_requested_are_let_through() -> None:
    """Of kube-state-metrics and kubelets: each name in a rule is in the list of what is kept."""
    kept = "|".join(
        [
            str(next(iter(_arguments([*kube_state_metrics.COMPONENT.objects(seed_inputs())])))),
            base64.b64decode(
                servers("cache")["Secret", "prometheus-cache-additional-scrape-configs"]["data"]["prometheus.yaml"]
            ).decode(),
        ]
    )
    rules = [
        rule["expr"]
        for server in prometheus.SERVERS
        for (kind, _), obj in servers(server).items()
        if kind == "PrometheusRule"
        for rule in obj["spec"]["groups"][0]["rules"]
    ]
    found = set(re.findall(r"(?<![:\w])(kube_\w+|container_\w+|kubelet_\w+)(?=[{\[ )])", " ".join(rules)))
    assert len(found) > 10
    assert {each for each in found if each.split("_", 1)[1].removeprefix("volume_stats_") not in kept} == set()


def _arguments(component: Sequence[Object]) -> list[str]:
    (its,) = (obj for obj in contents(component) if obj["kind"] == "Deployment")
    return [each for each in its["spec"]["template"]["spec"]["containers"][0]["args"] if "metric-allowlist" in each]
