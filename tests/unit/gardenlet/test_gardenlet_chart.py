"""The chart of a gardenlet: what its values change, and that the manifests are made of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet.common.charts.helm import Helm, Release
from agent.gardenlet.managed_seeds.installation.own_chart import archive
from agent.gardenlet.managed_seeds.installation.rules import values
from kube.objects import Object, mapping
from kube.yaml import Budget, load
from localprocesses.helm_program import find_or_build
from release.gardenlet_manifests import manifests

PROJECT = Path(__file__).parents[3]
CONFIG: Object = {
    "kind": "GardenletConfiguration",
    "gardenClientConnection": {"bootstrapKubeconfig": {"name": "boot", "namespace": "garden"}},
    "seedConfig": {"metadata": {"name": "s"}, "spec": {"provider": {"zones": ["a", "b"]}}},
    "later": {"large": 12345678901234567, "text": "1e3"},
}


@pytest.fixture(scope="module")
def helm() -> Helm:
    return Helm(program=find_or_build())


def rendered(helm: Helm, deployment: Object, *, kubeconfig: str = "", config: Object = CONFIG) -> dict[str, Object]:
    given = values.values(deployment, config, kubeconfig=kubeconfig)
    release = Release(name="gardenlet", namespace="garden", values=given, kubernetes="v1.30.0")
    found = [load(each.text, budget=Budget(9999)) for each in asyncio.run(helm.render(archive(), release))]
    return {f"{each['kind']} {each['metadata']['name'].split('-')[0]}": each for each in found if each}


def pod(objects: dict[str, Object]) -> Any:
    return objects["Deployment gardenlet"]["spec"]["template"]


def test_the_manifests_are_made_of_the_chart() -> None:
    find_or_build()
    for path, text in manifests().items():
        assert (PROJECT / "manifests" / path).read_text() == text, "run `make manifests`"


def test_the_configuration_goes_through_as_it_is_without_the_kubeconfig_that_becomes_a_secret(helm: Helm) -> None:
    objects = rendered(helm, {}, kubeconfig="a: kubeconfig\n")
    config_map = objects["ConfigMap gardenlet"]
    assert load(config_map["data"]["config.yaml"], budget=Budget(999)) == CONFIG
    assert config_map["immutable"]
    assert objects["Secret boot"]["data"] == {"kubeconfig": "YToga3ViZWNvbmZpZwo="}
    name = config_map["metadata"]["name"]
    deployment = objects["Deployment gardenlet"]
    assert list(deployment["metadata"]["annotations"].values()) == [name]
    assert {"name": "config", "configMap": {"name": name}} in pod(objects)["spec"]["volumes"]
    assert "checksum/secret-gardenlet-kubeconfig-garden-bootstrap" in pod(objects)["metadata"]["annotations"]
    assert "Secret boot" not in rendered(helm, {})


def test_another_configuration_has_another_name_so_that_pods_are_replaced(helm: Helm) -> None:
    one, other = (rendered(helm, {}, config={**CONFIG, "logLevel": level}) for level in ("info", "debug"))
    assert one["ConfigMap gardenlet"]["metadata"]["name"] != other["ConfigMap gardenlet"]["metadata"]["name"]
    assert rendered(helm, {}) == rendered(helm, {})


def test_what_is_taken_out_of_the_values_is_gone(helm: Helm) -> None:
    given: Object = {
        "replicaCount": 3,
        "serviceAccountName": "other",
        "imageVectorOverwrite": "images: []",
        "componentImageVectorOverwrite": "components: []",
        "resources": {"limits": {"memory": "1Gi"}},
        "env": [{"name": "A", "value": "b"}],
        "podLabels": {"l": "m"},
        "podAnnotations": {"n": "o"},
        "additionalVolumes": [{"name": "v", "emptyDir": {}}],
        "additionalVolumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    objects = rendered(helm, given)
    spec, container = pod(objects)["spec"], pod(objects)["spec"]["containers"][0]
    assert objects["Deployment gardenlet"]["spec"]["replicas"] == 3
    assert spec["serviceAccountName"] == "other"
    assert [each["name"] for each in container["env"]] == [
        "A",
        "IMAGEVECTOR_OVERWRITE",
        "IMAGEVECTOR_OVERWRITE_COMPONENTS",
    ]
    assert container["resources"]["limits"]["memory"] == "1Gi"
    assert pod(objects)["metadata"]["labels"]["l"] == "m"
    assert pod(objects)["metadata"]["annotations"]["n"] == "o"
    assert spec["volumes"][-1] == {"name": "v", "emptyDir": {}}
    assert [each["topologyKey"] for each in spec["topologySpreadConstraints"]] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    plain = rendered(helm, {})
    assert "env" not in pod(plain)["spec"]["containers"][0]
    assert len(pod(plain)["spec"]["volumes"]) == 2
    assert "n" not in pod(plain)["metadata"]["annotations"]
    assert "topologySpreadConstraints" not in pod(rendered(helm, {"replicaCount": 1}))["spec"]


def test_the_ports_are_those_of_the_configuration(helm: Helm) -> None:
    """A child has the servers of its parent."""
    servers = {"healthProbes": {"port": 12728}, "metrics": {"port": 12729}}
    objects = rendered(helm, {}, config={**CONFIG, "server": servers})
    named = {each["name"]: each["containerPort"] for each in pod(objects)["spec"]["containers"][0]["ports"]}
    assert named == {"health": 12728, "metrics": 12729}
    service = objects["Service gardenlet"]
    assert [(each["port"], each["targetPort"]) for each in service["spec"]["ports"]] == [(12729, 12729)]
    assert '"port":12729' in "".join(service["metadata"]["annotations"].values())
    ports = objects["NetworkPolicy gardenlet"]["spec"]["ingress"][0]["ports"]
    assert [each["port"] for each in ports] == [12728, 12729]


def test_before_a_release_replaces_another_it_checks_its_configuration(helm: Helm) -> None:
    (check,) = pod(rendered(helm, {"image": {"repository": "r", "tag": "v2"}}))["spec"]["initContainers"]
    assert check["image"] == "r:v2"
    assert check["args"] == ["--config=/etc/gardenlet/config/config.yaml", "--check"]
    assert check["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert mapping(check)["volumeMounts"][0]["mountPath"] == "/etc/gardenlet/config"
