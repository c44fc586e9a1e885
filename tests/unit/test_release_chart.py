"""The chart makes the same objects as kustomize does: of the overlay, and of an overlay of one's own with the same settings."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.charts import by_expressions, by_helm
from kube.objects import Object
from process.programs import built_programs
from release.chart import CHARTS, RESOURCE_MANAGER, ChartError, Image, chart

PROJECT = Path(__file__).parents[2]
OVERLAY = PROJECT / "manifests" / "overlays" / "standalone"
HELM = shutil.which("helm") or str(built_programs() / "helm")
NAMESPACE, TAG, DIGEST = "resource-manager", "v0.1.0", f"sha256:{'0' * 64}"
IMAGE = Image(repository="resource-manager", tag=TAG, digest="")
CONFIG = """\
# é <&> 50% "quoted" \\n
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection:
  resourceNamespace: elsewhere
"""


def of_overlay() -> list[Object]:
    """As recorded, which another test compares with what kustomize makes."""
    return list(yaml.safe_load_all((PROJECT / "tests" / "golden" / "standalone.yaml").read_text()))


def written(objects: Iterable[Object], directory: Path) -> Path:
    for path, content in chart(RESOURCE_MANAGER, objects, version="0.1.0", image=IMAGE).items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return directory / "resource-manager"


def rendered(how: str, made: Path, values: dict[str, Any], namespace: str) -> list[Object]:
    if how == "helm" and not shutil.which("helm"):
        pytest.skip("needs helm")
    return (by_helm if how == "helm" else by_expressions)(made, values, namespace)


def comparable(objects: Iterable[Object]) -> list[str]:
    """Without what Helm makes itself, in a fixed order, and with one name of the ConfigMap: its hash is Helm's or kustomize's."""
    found = [obj for obj in objects if obj["kind"] not in {"Namespace", "CustomResourceDefinition"}]
    (name,) = (obj["metadata"]["name"] for obj in found if obj["kind"] == "ConfigMap")
    assert name.startswith("gardener-resource-manager-config-")
    return sorted(json.dumps(obj, sort_keys=True, indent=1).replace(f'"{name}"', '"CONFIG"') for obj in found)


both = pytest.mark.parametrize("how", ["expressions", "helm"])


@both
def test_the_chart_makes_what_the_overlay_has(how: str, tmp_path: Path) -> None:
    made = written(of_overlay(), tmp_path)
    assert comparable(rendered(how, made, {}, NAMESPACE)) == comparable(of_overlay())
    definitions = [obj for obj in of_overlay() if obj["kind"] == "CustomResourceDefinition"]
    assert list(yaml.safe_load_all((made / "crds" / "definitions.yaml").read_text())) == definitions


@both
def test_values_do_what_an_overlay_of_ones_own_does(how: str, tmp_path: Path) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl")
    repository = "registry.example.com/resource-manager"
    values = {
        "image": {"repository": repository, "digest": DIGEST},
        "replicas": 3,
        "resources": {"requests": {"cpu": "2", "memory": "3Gi"}},
        "config": CONFIG,
    }
    requests = "/spec/template/spec/containers/0/resources/requests"
    patch = [
        {"op": "replace", "path": f"{requests}/{name}", "value": value}
        for name, value in (("cpu", "2"), ("memory", "3Gi"))
    ]
    own = tmp_path.resolve() / "own"
    own.mkdir()
    (own / "config.yaml").write_text(CONFIG)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "elsewhere",
        "resources": [os.path.relpath(OVERLAY, own)],
        "images": [{"name": "resource-manager", "newName": repository, "digest": DIGEST}],
        "replicas": [{"name": "gardener-resource-manager-agent", "count": 3}],
        "configMapGenerator": [
            {
                "name": "gardener-resource-manager-config",
                "behavior": "replace",
                "files": ["config.yaml"],
                "options": {"immutable": True},
            }
        ],
        "patches": [{"target": {"kind": "Deployment"}, "patch": json.dumps(patch)}],
    }
    (own / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run(["kubectl", "kustomize", str(own)], check=True, capture_output=True, text=True)
    made = written(of_overlay(), tmp_path)
    assert comparable(rendered(how, made, values, "elsewhere")) == comparable(yaml.safe_load_all(done.stdout))


@both
def test_another_configuration_file_has_another_name_so_that_pods_are_replaced(how: str, tmp_path: Path) -> None:
    made = written(of_overlay(), tmp_path)
    of_both = [rendered(how, made, values, NAMESPACE) for values in ({}, {"config": CONFIG})]
    names = [obj["metadata"]["name"] for objects in of_both for obj in objects if obj["kind"] == "ConfigMap"]
    assert len(set(names)) == 2


def without(kind: str) -> list[Object]:
    return [obj for obj in of_overlay() if obj["kind"] != kind]


def with_another_configuration() -> list[Object]:
    (config_map,) = (obj for obj in of_overlay() if obj["kind"] == "ConfigMap")
    return [*of_overlay(), {**config_map, "immutable": False}]


def with_a_template() -> list[Object]:
    objects = of_overlay()
    objects[0]["metadata"]["annotations"] = {"text": "{{ it }}"}
    role = next(obj for obj in objects if obj["kind"] == "ServiceAccount")
    role["metadata"]["annotations"] = {"text": "{{ it }}"}
    return objects


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (without("Deployment"), "no object is a Deployment"),
        (without("ConfigMap"), "no object has config"),
        (with_another_configuration(), "more than one object has config"),
        (with_a_template(), "an object has {{"),
    ],
)
def test_an_overlay_that_the_chart_cannot_follow_is_an_error(
    objects: list[Object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ChartError, match=message):
        written(objects, tmp_path)


def made_of(name: str, directory: Path) -> tuple[Path, list[Object]]:
    """A chart, and what the overlays make."""
    (kind,) = (each for each in CHARTS if each.name == name)
    objects: list[Object] = []
    for overlay in kind.overlays:
        command = ["kubectl", "kustomize", str(PROJECT / "manifests" / "overlays" / overlay)]
        objects += yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True).stdout)
    for path, content in chart(kind, objects, version="0.1.0", image=IMAGE).items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory / name, objects


needs_both = pytest.mark.skipif(not shutil.which("kubectl") or not HELM, reason="needs kubectl and helm")


@needs_both
@pytest.mark.parametrize("name", ["garden", "garden-controllers"])
def test_a_chart_of_a_garden_makes_what_the_overlays_have(name: str, tmp_path: Path) -> None:
    made, objects = made_of(name, tmp_path)

    def comparable_text(obj: Object) -> str:
        return re.sub(r"-config-[0-9a-z]{10}", "-config", json.dumps(obj, sort_keys=True))

    def is_made_otherwise(obj: Object) -> bool:
        by_helm_itself: bool = obj["kind"] == "Namespace" and obj["metadata"]["name"] == "garden"
        return by_helm_itself or bool(obj["kind"] == "CustomResourceDefinition")

    rendered_objects = {comparable_text(obj) for obj in by_helm(made, {}, "garden", program=HELM)}
    assert rendered_objects == {comparable_text(obj) for obj in objects if not is_made_otherwise(obj)}
    with pytest.raises(subprocess.CalledProcessError) as raised:
        by_helm(made, {}, "elsewhere", program=HELM)
    assert "install with --namespace garden" in raised.value.stderr


@needs_both
def test_each_program_of_a_chart_has_its_own_values(tmp_path: Path) -> None:
    made, _ = made_of("garden-controllers", tmp_path)
    values = {"scheduler": {"replicas": 1, "config": "kind: Other\n"}, "image": {"tag": "v9"}}
    objects = by_helm(made, values, "garden", program=HELM)
    deployments = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "Deployment"}
    replicas = {name: each["replicas"] for name, each in deployments.items()}
    assert replicas == {"gardener-controller-manager": 2, "gardener-scheduler": 1}
    images = {each["image"] for spec in deployments.values() for each in spec["template"]["spec"]["containers"]}
    assert images == {"resource-manager:v9"}
    configs = {obj["metadata"]["name"].rpartition("-")[0]: obj["data"] for obj in objects if obj["kind"] == "ConfigMap"}
    assert configs["gardener-scheduler-config"] == {"config.yaml": "kind: Other\n"}
    assert "ControllerManagerConfiguration" in configs["gardener-controller-manager-config"]["config.yaml"]
