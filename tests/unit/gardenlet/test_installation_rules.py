"""What an extension is given: values for its chart, access to the garden, and a ManagedResource of what was rendered."""

import base64
from dataclasses import replace
from typing import Any

import pytest
import yaml

from agent.gardenlet.common.charts.rules.output import Manifest, error_text, manifests, not_loadable
from agent.gardenlet.extensions.controller_installation.install import namespaces
from agent.gardenlet.extensions.controller_installation.install.rules import access
from agent.gardenlet.extensions.controller_installation.install.rules.access import Server
from agent.gardenlet.extensions.controller_installation.install.rules.injection import Injection
from agent.gardenlet.extensions.controller_installation.install.rules.manifests import rendered
from agent.gardenlet.extensions.controller_installation.install.rules.values import Surroundings, merged, values
from kube.objects import Object
from kube.paths import at

INJECTION = Injection("extension-e", "generic-garden-kubeconfig-12345678", "s")
NO_ACCESS = Injection("extension-e", "", "s")
AROUND = Surroundings(version="v1", garden_identity="g", kubeconfig="k", features={"A": True})
SEED: Object = {
    "metadata": {"name": "s"},
    "spec": {"provider": {"type": "local", "region": "r"}, "networks": {"pods": "10.0.0.0/16"}},
    "status": {"clusterIdentity": "s-identity"},
}


def workload(kind: str, *, namespace: str = "extension-e", env: list[Object] | None = None) -> Object:
    template: Object = {"spec": {"containers": [{"name": "a", **({"env": env} if env else {})}]}}
    spec = {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    meta = {"name": "w", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": group, "kind": kind, "metadata": meta, "spec": spec}


def container(obj: Object) -> Object:
    path = ("spec", "jobTemplate", "spec", "template") if obj["kind"] == "CronJob" else ("spec", "template")
    found: Object = at(obj, *path, "spec", "containers")[0]
    return found


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"])
def test_a_workload_in_the_namespace_gets_access(kind: str) -> None:
    changed = INJECTION.into(workload(kind))
    found = container(changed)
    assert {each["name"] for each in found["env"]} == {"GARDEN_KUBECONFIG", "SEED_NAME"}
    assert found["volumeMounts"][0]["mountPath"] == access.DIRECTORY
    assert list(changed["metadata"]["annotations"].values()) == [INJECTION.kubeconfig]
    assert INJECTION.into(changed) == changed


def test_what_a_cron_job_refers_to_is_noted_on_all_its_templates() -> None:
    """So that the garbage collector keeps the Secret for jobs that are still to be created."""
    changed = INJECTION.into(workload("CronJob"))
    for path in ((), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template")):
        assert list(at(changed, *path, "metadata", "annotations").values()) == [INJECTION.kubeconfig]


@pytest.mark.parametrize("obj", [workload("Deployment", namespace=""), workload("Job", namespace="x"), {"kind": "Pod"}])
def test_what_is_elsewhere_stays_as_it_is(obj: Object) -> None:
    assert INJECTION.into(obj) is obj


def test_workloads_elsewhere_are_named() -> None:
    found = [workload("Deployment", namespace=""), workload("Job", namespace="x"), workload("Job"), {"kind": "Pod"}]
    assert INJECTION.elsewhere(found) == ["Deployment default/w", "Job x/w"]
    assert NO_ACCESS.elsewhere(found) == []


@pytest.mark.parametrize(("injection", "label"), [(NO_ACCESS, "true"), (INJECTION, "false")])
def test_a_workload_without_access_gets_the_name_of_the_seed_only(injection: Injection, label: str) -> None:
    obj = workload("Deployment")
    obj["metadata"]["labels"] = {"extensions.gardener.cloud/inject-garden-kubeconfig": label}
    changed = injection.into(obj)
    assert container(changed) == {"name": "a", "env": [{"name": "SEED_NAME", "value": "s"}]}
    assert changed["metadata"] == obj["metadata"]


def test_an_own_kubeconfig_stays_and_the_name_of_the_seed_is_replaced() -> None:
    own = [{"name": "SEED_NAME", "value": "old"}, {"name": "GARDEN_KUBECONFIG", "value": "mine"}]
    found = container(INJECTION.into(workload("Deployment", env=own)))
    assert found["env"] == [{"name": "SEED_NAME", "value": "s"}, own[1]]
    assert "volumeMounts" not in found


def test_values_of_gardener_win_key_by_key() -> None:
    found = values({"gardener": {"version": "x", "mine": 1}, "other": [1]}, seed=SEED, around=AROUND)
    gardener = found["gardener"]
    assert (gardener["version"], gardener["mine"], found["other"]) == ("v1", 1, [1])
    assert gardener["gardenlet"] == {"featureGates": {"A": True}}
    seed = gardener["seed"]
    assert (seed["clusterIdentity"], seed["taints"], seed["blockCIDRs"]) == ("s-identity", None, None)
    assert (seed["ingressDomain"], seed["protected"], seed["visible"]) == ("", False, True)


def test_values_name_the_kubeconfig_only_if_it_is_injected() -> None:
    given = {each: values({}, seed=SEED, around=replace(AROUND, kubeconfig=each))["gardener"] for each in ("k", "")}
    assert given["k"]["garden"] == {"clusterIdentity": "g", "genericKubeconfigSecretName": "k"}
    assert given[""]["garden"] == {"clusterIdentity": "g"}


@pytest.mark.parametrize(
    ("spec", "key", "value"),
    [
        ({"taints": [{"key": "seed.gardener.cloud/protected"}]}, "protected", True),
        ({"settings": {"scheduling": {"visible": False}}}, "visible", False),
        ({"ingress": {"domain": "d"}}, "ingressDomain", "d"),
        ({"volume": {"providers": [{"name": "p"}]}}, "volumeProvider", "p"),
    ],
)
def test_values_about_the_seed(spec: Object, key: str, value: Any) -> None:
    assert values({}, seed={**SEED, "spec": SEED["spec"] | spec}, around=AROUND)["gardener"]["seed"][key] == value


def test_only_mappings_are_merged() -> None:
    assert merged({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2]}, "d": {}}) == {"a": {"b": 1, "c": [2]}, "d": {}}


def test_each_manifest_is_a_key_and_unchanged_to_the_byte() -> None:
    text = "apiVersion: v1\nkind: ClusterRole\nmetadata: {name: 'system:x'}  # as written\n"
    found = rendered("e", [Manifest("c/templates/a.yaml", text)] * 2 + [Manifest("c/b.yaml", "a: [")], INJECTION)
    data = {name: base64.b64decode(value).decode() for name, value in found.secret["data"].items()}
    assert data == {
        "c_templates_a_clusterrole_system_x.yaml": text,
        "c_templates_a_clusterrole_system_x-2.yaml": text,
        "c_b.yaml": "a: [",
    }
    secret = found.secret["metadata"]["name"]
    assert secret.startswith("e-")
    assert found.managed_resource["spec"] == {"class": "seed", "secretRefs": [{"name": secret}]}


def test_another_manifest_makes_another_secret() -> None:
    one, two = (rendered("e", [Manifest("f", text)], INJECTION).secret for text in ("a: 1\n", "a: 2\n"))
    assert one["metadata"]["name"] != two["metadata"]["name"]


def test_the_kubeconfig_names_the_file_with_the_token() -> None:
    secret = access.kubeconfig_secret(Server("https://garden", b"ca"), namespace="extension-e")
    config = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    cluster = config["clusters"][0]["cluster"]
    assert cluster == {"server": "https://garden", "certificate-authority-data": base64.b64encode(b"ca").decode()}
    assert config["users"][0]["user"] == {"tokenFile": f"{access.DIRECTORY}/token"}
    assert secret["immutable"]
    assert "certificate" not in str(access.kubeconfig_secret(Server("https://garden", b""), namespace="n")["data"])


def test_the_level_of_pod_security_goes_with_its_annotation() -> None:
    requested: Object = {
        "metadata": {"name": "e", "annotations": {"security.gardener.cloud/pod-security-enforce": "baseline"}}
    }
    live = namespaces.desired(requested, registration="r", zones=["a", "b"], is_garden=False)
    assert live["metadata"]["labels"][namespaces.ENFORCED] == "baseline"
    wanted = namespaces.desired({"metadata": {"name": "e"}}, registration="r", zones=["a", "b"], is_garden=False)
    assert namespaces.patch(wanted, live) == {"metadata": {"labels": {namespaces.ENFORCED: None}}}
    assert namespaces.patch(live, live) is None


@pytest.mark.parametrize(
    ("printed", "reported"),
    [
        (
            "level=WARN x\nError: template: c/a.yaml:1: boo\n\nUse --debug flag to render out invalid YAML\n",
            "template: c/a.yaml:1: boo",
        ),
        ("Error: YAML parse error on c/a.yaml: x\n", "failed to sort manifests: YAML parse error on c/a.yaml: x"),
        ("Error: Chart.yaml file is missing\n", "can't load chart from archive: Chart.yaml file is missing"),
        ("Error: no /proc/self/fd/12 there", "no chart there"),
        ("x" * 2000 + "y" * 1000, "x" * 1024 + " … " + "x" * 24 + "y" * 1000),
    ],
)
def test_errors_of_helm(printed: str, reported: str) -> None:
    assert error_text(printed, {}) == reported


@pytest.mark.parametrize(
    ("values", "reported"),
    [
        ({"password": "pa55word"}, "Error: *** is no word"),
        ({"a": [{"authData": {"b": ["pa55word", "pa55"]}}]}, "Error: *** is no word"),
        ({"secret": "pa55"}, "Error: ***word is no word"),
        ({"word": "pa55word"}, "Error: pa55word is no word"),
        ({"token": "is", "key": 55, "secretRef": None}, "Error: pa55word is no word"),
    ],
)
def test_errors_of_helm_without_secrets(values: Object, reported: str) -> None:
    assert f"Error: {error_text('Error: pa55word is no word', values)}" == reported


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (b"", "EOF"),
        (b"nonsense", "unexpected EOF"),
        (b"more nonsense", "gzip: invalid header"),
    ],
)
def test_what_is_no_archive(archive: bytes, problem: str) -> None:
    assert not_loadable(archive) == f"can't load chart from archive: {problem}"


def test_manifests_of_an_output() -> None:
    output = (
        "---\n# Source: c/templates/a.yaml\na: 1\n---\n# Source: c/templates/b.yaml\n\n---\n# Source: c/x.yaml\nb: 2\n"
    )
    assert manifests(output) == [Manifest("c/templates/a.yaml", "a: 1\n"), Manifest("c/x.yaml", "b: 2\n")]
