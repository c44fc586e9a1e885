"""What kustomize makes of the manifests: as recorded, consistent in itself, and with nothing that a strict cluster minds.

The recorded texts show in a review what a change of the manifests comes to. After a change that is meant:

    kubectl kustomize manifests/overlays/NAME > tests/golden/NAME.yaml

Of overlays for monitoring only the last object is recorded; the others come as their files are.
"""

import os
import re
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from config import controller_manager, gardenlet, resource_manager, scheduler, webhooks
from devcluster.audit import Call
from gardener.responsibility import DEFAULT_CLASS
from kit.granted_rights import Right, rights, unused
from kit.monitoring_files import CONTROLLER_MANAGER, GARDENLET, RESOURCE_MANAGER, SCHEDULER, Monitored, rules_text
from kube.objects import Object, labels, metadata
from process.configuration.blocks import Configuration
from process.configuration.component import Component, LoadedConfig
from webhooks.configurations.objects import INJECT_CA_FROM, Service, Url
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

C = TypeVar("C", bound=Configuration)

PROJECT = Path(__file__).parents[2]
MANIFESTS = PROJECT / "manifests"
RECORDED = ("controller-manager", "gardenlet", "runtime", "scheduler", "standalone", "target", "target-cluster")
OVERLAYS = tuple(sorted(path.name for path in (MANIFESTS / "overlays").iterdir()))
WITH_PODS = ("runtime", "runtime-cert-manager", "target")
WITH_AGENT = (*WITH_PODS, "standalone")
WITH_CONTAINERS = (*WITH_AGENT, "garden")
OF_THIS_PROJECT = (*WITH_CONTAINERS, "controller-manager", "scheduler", "gardenlet", "garden-with-controllers")
PARTS_OF_GARDEN = {"garden-base": "base/garden", "garden-admission": "instances/garden"}
"""Recorded apart: what the garden consists of besides is generated, and tests of its own know from what."""
DNS = "gardener-resource-manager"


def kustomized(directory: Path) -> str:
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl")
    command = ["kubectl", "kustomize", str(directory)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@cache
def built(overlay: str) -> str:
    return kustomized(MANIFESTS / "overlays" / overlay)


@cache
def recorded(overlay: str) -> str:
    return (PROJECT / "tests" / "golden" / f"{overlay}.yaml").read_text()


@cache
def all_in(text: str) -> list[Object]:
    return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]


def objects_in(text: str, *kinds: str) -> list[Object]:
    """Of these kinds, or all."""
    return [obj for obj in all_in(text) if not kinds or obj["kind"] in kinds]


def objects(overlay: str, *kinds: str) -> list[Object]:
    return objects_in(built(overlay), *kinds)


def with_component(directory: Path, overlay: str, component: str) -> list[Object]:
    """The objects of an instance and of the component, as a user's overlay in this empty directory."""
    here = Path(os.path.relpath(MANIFESTS, directory.resolve()))
    own = {"resources": [str(here / "overlays" / overlay)], "components": [str(here / "components" / component)]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(own))
    return objects_in(kustomized(directory.resolve()))


def one(overlay: str, kind: str, name: str) -> Object:
    (found,) = (obj for obj in objects(overlay, kind) if metadata(obj)["name"] == name)
    return found


def configuration(overlay: str, component: Component[C]) -> LoadedConfig[C]:
    (found,) = (obj for obj in objects(overlay, "ConfigMap") if "config.yaml" in obj["data"])
    return component.decode(found["data"]["config.yaml"])


def containers(overlay: str) -> list[tuple[Object, Object]]:
    """Each with the spec of its pod."""
    specs = [deployment["spec"]["template"]["spec"] for deployment in objects(overlay, "Deployment")]
    return [(spec, container) for spec in specs for container in spec["containers"]]


# --- as a whole


@pytest.mark.parametrize("overlay", RECORDED)
def test_it_is_as_recorded(overlay: str) -> None:
    assert built(overlay) == recorded(overlay)


@pytest.mark.parametrize("part", PARTS_OF_GARDEN)
def test_a_part_of_the_garden_is_as_recorded(part: str) -> None:
    """`kubectl kustomize manifests/base/garden > tests/golden/garden-base.yaml`, and so on."""
    assert kustomized(MANIFESTS / PARTS_OF_GARDEN[part]) == recorded(part)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_object_is_there_twice(overlay: str) -> None:
    keys = [(obj["kind"], metadata(obj).get("namespace"), metadata(obj)["name"]) for obj in objects(overlay)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("overlay", OF_THIS_PROJECT)
def test_the_image_is_of_this_release(overlay: str) -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert {container["image"] for _, container in containers(overlay)} == {f"resource-manager:v{version}"}


def test_who_scales_webhooks_finds_their_containers_and_no_one_else_reports_how_many(tmp_path: Path) -> None:
    found = with_component(tmp_path, "runtime", "horizontal-pod-autoscaler")
    (scaler,) = (obj for obj in found if obj["kind"] == "HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    (deployment,) = (obj for obj in found if (obj["kind"], metadata(obj)["name"]) == (target["kind"], target["name"]))
    assert "replicas" not in deployment["spec"]
    names = {container["name"] for container in deployment["spec"]["template"]["spec"]["containers"]}
    assert {metric["containerResource"]["container"] for metric in scaler["spec"]["metrics"]} <= names
    (agent,) = (obj for obj in found if metadata(obj)["name"] == f"{DNS}-agent" and obj["kind"] == "Deployment")
    assert agent["spec"]["replicas"] == 2


# --- monitoring


MONITORING = {
    "monitoring": RESOURCE_MANAGER,
    "controller-manager-monitoring": CONTROLLER_MANAGER,
    "scheduler-monitoring": SCHEDULER,
    "gardenlet-monitoring": GARDENLET,
}


@pytest.mark.parametrize("overlay", MONITORING)
def test_what_is_scraped_is_as_recorded(overlay: str) -> None:
    assert built(overlay).rpartition("---\n")[2] == recorded(overlay)


@pytest.mark.parametrize(("overlay", "of"), MONITORING.items())
def test_alerts_and_dashboards_come_as_their_files_are(overlay: str, of: Monitored) -> None:
    found = objects(overlay)
    assert {metadata(obj)["namespace"] for obj in found} == {"garden"}
    dashboards, *rules, _ = found
    assert dashboards["data"] == {path.name: path.read_text() for path in of.dashboard_files}
    assert labels(dashboards)["grafana_dashboard"] == "1"
    assert [group for rule in rules for group in rule["spec"]["groups"]] == yaml.safe_load(rules_text(of))["groups"]


def test_monitoring_of_production_is_where_the_agent_is_and_without_alerts_for_webhooks(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "production.md").read_text()
    example, role = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    here = os.path.relpath(MANIFESTS, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(example.replace("../resource-manager/manifests", here))
    (tmp_path / "managed-kinds.yaml").write_text(role)
    monitoring = objects_in(kustomized(tmp_path.resolve()), "ServiceMonitor", "PrometheusRule")
    assert {obj["kind"] for obj in monitoring} == {"ServiceMonitor", "PrometheusRule"}
    assert {metadata(obj)["namespace"] for obj in monitoring} == {"resource-manager"}
    assert "webhook" not in yaml.safe_dump(monitoring).lower()


def test_a_migration_keeps_the_certificate_of_the_original(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "migration.md").read_text()
    (example,) = (
        body for body in re.findall(r"^ *```yaml\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL) if "patches" in body
    )
    here = os.path.relpath(MANIFESTS, tmp_path.resolve())
    overlay = textwrap.dedent(example).replace("../resource-manager/manifests", here)
    (tmp_path / "kustomization.yaml").write_text(overlay)
    (tmp_path / "config.yaml").write_text("logLevel: debug\n")
    objects = objects_in(kustomized(tmp_path.resolve()))
    (pods,) = (
        obj["spec"]["template"]["spec"]
        for obj in objects
        if (obj["kind"], metadata(obj)["name"]) == ("Deployment", DNS)
    )
    assert [container["name"] for container in pods["containers"]] == [DNS]
    (certificate,) = (volume["secret"] for volume in pods["volumes"] if volume["name"] == "tls")
    assert certificate["secretName"] == f"{DNS}-server-1a2b3c4d"
    (config,) = (obj["data"] for obj in objects if metadata(obj)["name"].startswith(f"{DNS}-config-"))
    assert config == {"config.yaml": "logLevel: debug\n"}


def test_the_address_of_runbooks_is_set_as_the_page_states(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "monitoring.md").read_text()
    (example,) = (
        body for body in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if "runbooks" in body
    )
    here = os.path.relpath(MANIFESTS, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(example.replace("../resource-manager/manifests", here))
    (rule,) = objects_in(kustomized(tmp_path.resolve()))
    alerts = [alert for group in rule["spec"]["groups"] for alert in group["rules"]]
    base = "https://wiki.example.com/resource-manager/monitoring"
    assert [alert["annotations"]["runbook_url"] for alert in alerts] == [
        f"{base}#{alert['alert'].lower()}" for alert in alerts
    ]


@pytest.mark.parametrize(
    ("overlay", "monitoring", "number"),
    [
        *((overlay, "monitoring", 2) for overlay in WITH_PODS),
        *((overlay, f"{overlay}-monitoring", 1) for overlay in ("controller-manager", "scheduler", "gardenlet")),
    ],
)
def test_services_are_scraped_as_the_job_that_alerts_are_about(overlay: str, monitoring: str, number: int) -> None:
    (monitor,) = (obj["spec"] for obj in objects(monitoring, "ServiceMonitor"))
    (endpoint,) = monitor["endpoints"]
    services = objects(overlay, "Service")
    assert len(services) == number
    for service in services:
        assert monitor["selector"]["matchLabels"].items() <= labels(service).items()
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        assert labels(service)[monitor["jobLabel"]] == MONITORING[monitoring].job


# --- the configuration file


@pytest.mark.parametrize("overlay", WITH_CONTAINERS)
def test_the_configuration_file_is_right_and_fits_what_is_mounted(overlay: str) -> None:
    component: Component[Any] = webhooks.COMPONENT if overlay == "garden" else resource_manager.COMPONENT
    loaded = configuration(overlay, component)
    assert not loaded.warnings
    server = loaded.config.server
    for spec, container in containers(overlay):
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert container["args"][0] == "--config=/etc/gardener-resource-manager-config/config.yaml"
        assert "/etc/gardener-resource-manager-config" in mounts
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        if ports:
            assert (ports["metrics"], ports["health"]) == (server.metrics.port, server.health_probes.port)
        if container["name"] == "gardener-resource-manager":
            assert ports["server"] == server.webhooks.port
            assert server.webhooks.tls.server_cert_dir in mounts
        target = component.connections(loaded.config)[component.clusters[-1].name].kubeconfig
        assert not target or str(Path(target).parent) in mounts
        assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}


@pytest.mark.parametrize("overlay", WITH_AGENT)
def test_lease_and_namespaces_are_those_of_the_deployment(overlay: str) -> None:
    config = configuration(overlay, resource_manager.COMPONENT).config
    namespaces = {metadata(obj)["namespace"] for obj in objects(overlay, "Deployment")}
    assert namespaces == {config.leader_election.resource_namespace}
    assert set(config.source_client_connection.namespaces) <= namespaces
    role = one(overlay, "Role", "gardener-resource-manager-leader-election")
    assert [config.leader_election.resource_name] in [rule.get("resourceNames") for rule in role["rules"]]


# --- the programs of a garden, and of a seed

OF_GARDENS = {"controller-manager": controller_manager.decode, "scheduler": scheduler.decode}
of_gardens = pytest.mark.parametrize("role", OF_GARDENS)
OF_GARDENER = {**OF_GARDENS, "gardenlet": gardenlet.decode}
NAMES = {**{role: f"gardener-{role}" for role in OF_GARDENS}, "gardenlet": "gardenlet"}


@pytest.mark.parametrize("role", OF_GARDENER)
def test_a_program_of_gardener_has_names_labels_and_ports_of_the_original(role: str) -> None:
    ours = {"app": "gardener", "role": role}
    (deployment,) = objects(role, "Deployment")
    assert (metadata(deployment)["namespace"], metadata(deployment)["name"]) == ("garden", NAMES[role])
    assert deployment["spec"]["selector"] == {"matchLabels": ours}
    for obj in objects(role, "Service", "PodDisruptionBudget", "NetworkPolicy"):
        found = obj["spec"].get("podSelector", obj["spec"].get("selector"))
        assert found.get("matchLabels", found) == ours
    priority = deployment["spec"]["template"]["spec"]["priorityClassName"]
    assert priority == ("gardener-controlplane" if role in OF_GARDENS else "gardener-system-critical")


@pytest.mark.parametrize(("role", "decoded"), OF_GARDENER.items())
def test_its_configuration_fits_what_is_mounted(role: str, decoded: Callable[[str], LoadedConfig[Any]]) -> None:
    (found,) = objects(role, "ConfigMap")
    loaded = decoded(found["data"]["config.yaml"])
    assert not loaded.warnings
    ((_, container),) = containers(role)
    directory = container["args"][0].removeprefix("--config=").removesuffix("/config.yaml")
    assert directory in {mount["mountPath"] for mount in container["volumeMounts"]}
    server = loaded.config.server
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"metrics": server.metrics.port, "health": server.health_probes.port}
    election = loaded.config.leader_election
    granted = one(role, "Role", f"{NAMES[role]}-leader-election")
    assert [election.resource_name] in [rule.get("resourceNames") for rule in granted["rules"]]
    assert metadata(granted)["namespace"] == election.resource_namespace


def test_the_controller_manager_has_no_right_for_everything() -> None:
    granted = rights(objects("controller-manager"), "garden/gardener-controller-manager")
    assert not [right for right in granted if "*" in {right.group, right.resource, right.verb}]
    assert {right.verb for right in granted if right.resource == "signers"} == {"approve"}
    assert {right.resource for right in granted if right.verb in {"bind", "escalate"}} == {"clusterroles"}
    assert not {right for right in granted if right.resource in {"pods", "nodes", "internalsecrets", "shootstates"}}


def test_the_scheduler_writes_nothing_but_shoots() -> None:
    granted = {str(right) for right in rights(objects("scheduler"), "garden/gardener-scheduler")}
    assert {right for right in granted if not right.startswith(READING)} == {
        "create events",
        "create leases.coordination.k8s.io",
        "patch events",
        "patch shoots.core.gardener.cloud",
        "patch shoots/status.core.gardener.cloud",
        "update leases.coordination.k8s.io gardener-scheduler-leader-election",
        "update shoots/binding.core.gardener.cloud",
    }


def test_a_gardenlet_is_not_restarted_since_its_garden_is_away_or_since_it_waits_for_credentials() -> None:
    ((_, container),) = containers("gardenlet")
    assert {container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness")} == {"/healthz/ping"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_a_gardenlet_may_grant_what_it_may_not_do_and_has_no_right_for_everything() -> None:
    granted = rights(objects("gardenlet"), "garden/gardenlet")
    assert {right.resource for right in granted if right.verb in {"bind", "escalate"}} == {"clusterroles", "roles"}
    assert not [right for right in granted if "*" in {right.group, right.verb}]
    assert {right.verb for right in granted if right.resource == "nodes"} == {"get", "list", "watch"}


@of_gardens
def test_who_recommends_resources_finds_it(role: str, tmp_path: Path) -> None:
    found = with_component(tmp_path, role, f"{role}/vertical-pod-autoscaler")
    (autoscaler,) = (obj for obj in found if obj["kind"] == "VerticalPodAutoscaler")
    target = autoscaler["spec"]["targetRef"]
    (deployment,) = (obj for obj in found if (obj["kind"], metadata(obj)["name"]) == (target["kind"], target["name"]))
    assert metadata(autoscaler)["namespace"] == metadata(deployment)["namespace"]


def test_the_garden_with_controllers_is_all_of_it() -> None:
    together = objects("garden-with-controllers")
    apart = [*objects("garden"), *objects("controller-manager"), *objects("scheduler")]
    assert sorted(map(str, together)) == sorted({str(obj) for obj in apart})


# --- webhook configurations


def without_ca(obj: Object) -> Object:
    def without(name: str, values: Object) -> Object:
        return {each: value for each, value in values.items() if each != name}

    webhooks = [{**each, "clientConfig": without("caBundle", each["clientConfig"])} for each in obj["webhooks"]]
    return {**obj, "metadata": without("annotations", metadata(obj)), "webhooks": webhooks}


@pytest.mark.parametrize(
    ("overlay", "configured", "instance"),
    [
        ("runtime", "runtime", Instance(mode=Mode.RUNTIME)),
        ("runtime-cert-manager", "runtime-cert-manager", Instance(mode=Mode.RUNTIME)),
        ("target-cluster", "target", Instance(mode=Mode.TARGET)),
    ],
)
def test_webhook_configurations_follow_from_the_configuration_file(
    overlay: str, configured: str, instance: Instance
) -> None:
    """If not, the first line of the manifest states what writes it."""
    config = configuration(configured, resource_manager.COMPONENT).config
    namespace, name = config.leader_election.resource_namespace, instance.app
    address = Service(namespace, name) if instance.mode is Mode.RUNTIME else Url(f"https://{name}.{namespace}:443")
    wanted = configurations(config.webhooks, instance, address=address, trust=None)
    assert_registered(overlay, wanted)


def test_webhook_configurations_of_a_garden_follow_from_its_configuration_file() -> None:
    instance = Instance(mode=Mode.RUNTIME, prefix="garden-")
    section = configuration("garden", webhooks.COMPONENT).config.webhooks
    assert_registered("garden", configurations(section, instance, address=Service("garden", instance.app), trust=None))


def assert_registered(overlay: str, wanted: list[Object]) -> None:
    found = objects(overlay, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    by_kind = {obj["kind"]: without_ca(obj) for obj in found}
    assert by_kind == {obj["kind"]: obj for obj in wanted}


def test_cert_manager_is_requested_the_names_of_the_service_and_learns_where_its_ca_belongs() -> None:
    overlay = "runtime-cert-manager"
    certificate = one(overlay, "Certificate", "gardener-resource-manager")
    service = one(overlay, "Service", DNS)
    name, namespace = metadata(service)["name"], metadata(service)["namespace"]
    assert f"{name}.{namespace}.svc" in certificate["spec"]["dnsNames"]
    volumes = [volume for spec, _ in containers(overlay) for volume in spec["volumes"]]
    assert certificate["spec"]["secretName"] in [volume.get("secret", {}).get("secretName") for volume in volumes]
    for obj in objects(overlay, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert metadata(obj)["annotations"][INJECT_CA_FROM] == f"{namespace}/{metadata(certificate)['name']}"


@pytest.mark.parametrize("overlay", WITH_PODS)
def test_pods_that_webhooks_need_are_not_sent_to_them(overlay: str) -> None:
    """By their label `app`: all other pods can wait until the server is back."""
    deployment = one(overlay, "Deployment", "gardener-resource-manager")
    assert labels(deployment["spec"]["template"])["app"] == Instance(mode=Mode.RUNTIME).app


# --- taking the place of the original


@pytest.mark.parametrize("overlay", WITH_PODS)
def test_names_and_selectors_are_those_of_the_original(overlay: str) -> None:
    ours = {"app": "gardener-resource-manager"}
    # This can't be changed in a Deployment that exists.
    assert one(overlay, "Deployment", DNS)["spec"]["selector"] == {"matchLabels": ours}
    service = one(overlay, "Service", DNS)
    assert service["spec"]["selector"] == ours
    ports = {port["name"]: (port["port"], port["targetPort"]) for port in service["spec"]["ports"]}
    assert ports == {"metrics": (8080, 8080), "health": (8081, 8081), "server": (443, 10250)}
    assert one(overlay, "PodDisruptionBudget", DNS)
    assert one(overlay, "ServiceAccount", DNS)


@pytest.mark.parametrize("overlay", WITH_PODS)
def test_a_selector_finds_pods_of_one_deployment_only(overlay: str) -> None:
    templates = {metadata(obj)["name"]: labels(obj["spec"]["template"]) for obj in objects(overlay, "Deployment")}
    assert len(templates) == 2
    for obj in objects(overlay, "Service", "PodDisruptionBudget", "NetworkPolicy", "Deployment"):
        spec = obj["spec"]
        found = spec.get("podSelector", spec.get("selector"))
        wanted = found.get("matchLabels", found)
        chosen = [name for name, present in templates.items() if wanted.items() <= present.items()]
        assert chosen == [metadata(obj)["name"]]


# --- pods


@pytest.mark.parametrize("overlay", OF_THIS_PROJECT)
def test_pods_are_restricted(overlay: str) -> None:
    for spec, container in containers(overlay):
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        restricted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}
        assert container["securityContext"] == {**restricted, "capabilities": {"drop": ["ALL"]}}
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        writable = [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        assert writable == (["tls"] if container["name"] == "certificates" else [])


@pytest.mark.parametrize("overlay", [*WITH_PODS, "controller-manager", "scheduler", "gardenlet"])
def test_priority_classes_are_deployed_along(overlay: str) -> None:
    classes = {metadata(obj)["name"] for obj in objects(overlay, "PriorityClass")}
    assert {spec["priorityClassName"] for spec, _ in containers(overlay)} == classes


# --- rights


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_roles_are_bound_to_accounts_that_exist(overlay: str) -> None:
    accounts = {(metadata(obj)["namespace"], metadata(obj)["name"]) for obj in objects(overlay, "ServiceAccount")}
    roles = {(obj["kind"], metadata(obj)["name"]) for obj in objects(overlay, "Role", "ClusterRole")}
    for binding in objects(overlay, "RoleBinding", "ClusterRoleBinding"):
        bound = [subject for subject in binding["subjects"] if subject["kind"] == "ServiceAccount"]
        assert {(subject["namespace"], subject["name"]) for subject in bound} <= accounts
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles


@pytest.mark.parametrize(
    ("overlay", "account"),
    [
        ("runtime", "garden/gardener-resource-manager-webhooks"),
        ("target", "shoot--project--name/gardener-resource-manager-webhooks"),
        ("target-cluster", "kube-system/gardener-resource-manager-webhooks"),
        ("garden", "garden/garden-gardener-resource-manager-webhooks"),
    ],
)
def test_the_webhooks_write_nothing_but_certificates(overlay: str, account: str) -> None:
    writes = {f"{right.verb} {right.resource}" for right in rights(objects(overlay), account)}
    secrets = {"create secrets", "patch secrets"}
    hooks = {"update mutatingwebhookconfigurations", "update validatingwebhookconfigurations"}
    api = {"update apiservices"} if overlay == "garden" else set()
    assert {each for each in writes if not each.startswith(READING)} <= secrets | hooks | api | {REVIEWS}


def test_without_gardener_there_is_no_class_and_no_more_right_than_with_it() -> None:
    assert configuration("standalone", resource_manager.COMPONENT).config.controllers.resource_class == DEFAULT_CLASS
    account = "resource-manager/gardener-resource-manager"
    assert rights(objects("standalone"), account) <= rights(objects("runtime"), ACCOUNTS["runtime"])
    assert not objects("standalone", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


READING = ("get ", "list ", "watch ")
REVIEWS = "create subjectaccessreviews"
ACCOUNTS = {"runtime": "garden/gardener-resource-manager", "target-cluster": "kube-system/gardener-resource-manager"}
IMPERSONATE = Right("", "serviceaccounts", "impersonate")


@pytest.mark.parametrize("overlay", RECORDED)
def test_no_one_may_be_impersonated_unless_a_component_is_added(overlay: str) -> None:
    rules = [rule for obj in objects_in(recorded(overlay), "Role", "ClusterRole") for rule in obj["rules"]]
    assert rules
    assert [rule for rule in rules if {"impersonate", "*"} & set(rule["verbs"])] == []


@pytest.mark.parametrize("overlay", ACCOUNTS)
def test_the_component_impersonation_adds_this_right_and_no_other(overlay: str, tmp_path: Path) -> None:
    account = ACCOUNTS[overlay]
    granted = rights(objects_in(recorded(overlay)), account)
    assert rights(with_component(tmp_path, overlay, "impersonation"), account) == granted | {IMPERSONATE}


@pytest.mark.parametrize("overlay", ACCOUNTS)
def test_with_impersonation_only_the_agent_may_not_write_what_managed_resources_contain(
    overlay: str, tmp_path: Path
) -> None:
    account = ACCOUNTS[overlay]
    granted = rights(with_component(tmp_path, overlay, "impersonation-only"), account)
    assert granted - rights(objects_in(recorded(overlay)), account) == {IMPERSONATE}
    assert {right.verb for right in granted if "*" in {right.group, right.resource}} == {"get", "list", "watch"}
    assert not any(right.verb in {"escalate", "bind"} for right in granted)


@pytest.mark.parametrize(
    ("overlay", "account"),
    [
        ("runtime", "garden/gardener-resource-manager"),
        ("standalone", "resource-manager/gardener-resource-manager"),
        ("target", "shoot--project--name/gardener-resource-manager"),
    ],
)
def test_the_component_history_lets_the_agent_keep_and_prune_secrets_and_no_more(
    overlay: str, account: str, tmp_path: Path
) -> None:
    wanted = {Right("", "secrets", "create"), Right("", "secrets", "delete")}
    granted = rights(objects_in(recorded(overlay)), account)
    assert rights(with_component(tmp_path, overlay, "history"), account) == granted | wanted


def binding(role: str, *, subject: str = "a", kind: str = "ClusterRole", **meta: Any) -> Object:
    return {
        "kind": f"{kind}Binding",
        "metadata": {"name": role, **meta},
        "roleRef": {"kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": "n", "name": subject}],
    }


def role(name: str, *rules: Object, kind: str = "ClusterRole", **meta: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name, **meta}, "rules": list(rules)}


READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


def call(verb: str, name: str = "") -> Call:
    nowhere = dict.fromkeys(("user_agent", "user", "group", "namespace", "uri"), "")
    return Call(verb=verb, resource="pods", name=name, status=200, event={}, **nowhere)


def test_rights_are_those_of_the_roles_that_are_bound() -> None:
    other = {**READ, "verbs": ["watch"]}
    found = [role("one", READ), role("two", other), binding("one"), binding("two", subject="b")]
    assert rights(found, "n/a") == {Right("", "pods", "get"), Right("", "pods", "list")}
    local = [role("x", READ, kind="Role", namespace="m"), binding("x", kind="Role", namespace="m")]
    assert len(rights(local, "n/a")) == 2


def test_a_right_is_unused_if_no_call_needed_it_and_wildcards_are_left_out() -> None:
    named = Right("", "pods", "get", ("p",))
    granted = {named, Right("", "pods", "list"), Right("*", "*", "get")}
    assert unused(granted, [call("list"), call("get", "q")]) == [named]
    assert unused(granted, [call("list"), call("get", "p")]) == []
