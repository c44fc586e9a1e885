"""Two programs for the machines of a Shoot: one creates machines, the other decides how many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.access import (
    cluster_role,
    cluster_role_binding,
    role,
    role_binding,
    rule,
    service_account,
)
from components.component import Component, always
from components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    PRIORITY,
    REACHES_SHOOT,
    SEEN_BY_EXTENSIONS,
    Running,
    access_secret,
    access_secret_name,
    kubeconfig_volume,
)
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import TO_DNS, TO_RUNTIME_API_SERVER, allowed_ports, autoscaler, disruption_budget
from components.results import NAMESPACE, WORKER
from components.secrets.tables import TOKEN_KUBECONFIG
from components.worker_roles import CLUSTER_AUTOSCALER, MACHINE_CONTROLLER_MANAGER
from components.workloads import container, container_ports, deployment, port, service
from gardener import keys
from gardener.garden.shoots import workers
from kube.objects import Object, integer, spec, text
from kube.paths import mappings_at

_EVERY_VERB = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_LOOK = ("watch", "list", "get")
_RESTARTED_IN_MAINTENANCE = {"maintenance.gardener.cloud/restart": "true"}
_MANAGER_PORT, _PROVIDER_PORT, _AUTOSCALER_PORT = 10258, 10259, 8085
_ROLE = "gardener.cloud:target:{}"
_MOST_NODES = 256
_SETTINGS_FIELD = "clusterAutoscaler"
_LOG_LEVELS = {CLUSTER_AUTOSCALER: 2, MACHINE_CONTROLLER_MANAGER: 3}


def _labels(name: str) -> dict[str, str]:
    return {"app": "kubernetes", "role": name}


def _objects(
    name: str,
    inputs: Inputs,
    *,
    ports: Mapping[str, int],
    seed_role: str,
    its_deployment: Object,
    policy: Object,
    autoscaler_labels: Mapping[str, str] | None = None,
) -> list[Object]:
    binding = cluster_role_binding(f"{name}-{inputs.namespace}", name, namespace=inputs.namespace, role=seed_role)
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": inputs.namespace, "uid": inputs.namespace_uid}
    binding["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return [
        service_account(name, inputs.namespace),
        binding,
        service(
            name,
            namespace=inputs.namespace,
            ports=[port(each, number) for each, number in ports.items()],
            selects=_labels(name),
            labels=_labels(name),
            annotations={ALL_SCRAPE_TARGETS: allowed_ports(*ports.values())},
            clusterIP="None",
        ),
        access_secret(name, inputs.namespace),
        its_deployment,
        disruption_budget(name, inputs.namespace, labels=_labels(name)),
        *(
            [autoscaler(f"{name}-vpa", inputs.namespace, deployment=name, policy=policy, labels=autoscaler_labels)]
            if inputs.autoscaled
            else []
        ),
    ]


def _deployment(name: str, inputs: Inputs, its_container: Object, *, reaches: Sequence[str], **fields: Any) -> Object:
    kubeconfig = inputs.secrets.current(TOKEN_KUBECONFIG).name
    pod = {
        "serviceAccountName": name,
        "priorityClassName": PRIORITY.format(300),
        "terminationGracePeriodSeconds": 5,
        "containers": [its_container],
        "volumes": [
            {
                "name": "kubeconfig",
                **kubeconfig_volume(kubeconfig, access_secret_name(name)),
            },
        ],
    }
    reached = dict.fromkeys((TO_DNS, TO_RUNTIME_API_SERVER, *reaches), keys.ALLOWED)
    return deployment(
        name,
        namespace=inputs.namespace,
        labels={**_labels(name), **CONTROL_PLANE, **SEEN_BY_EXTENSIONS, keys.HIGH_AVAILABILITY_TYPE: "controller"},
        selects=_labels(name),
        pod_labels={**CONTROL_PLANE, **_RESTARTED_IN_MAINTENANCE, **reached, **REACHES_SHOOT},
        pod=pod,
        replicas=inputs.running.replicas(1),
        **fields,
    )


_MOUNTS = [{"name": "kubeconfig", "mountPath": KUBECONFIG_DIRECTORY, "readOnly": True}]


# --- creation of machines


def _manager(inputs: Inputs) -> list[Object]:
    name = MACHINE_CONTROLLER_MANAGER
    probe = {
        "httpGet": {"path": "/healthz", "port": _MANAGER_PORT, "scheme": "HTTP"},
        "initialDelaySeconds": 30,
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    arguments = (
        "--control-kubeconfig=inClusterConfig",
        "--machine-safety-overshooting-period=1m",
        f"--namespace={inputs.namespace}",
        f"--port={_MANAGER_PORT}",
        "--safety-up=2",
        "--safety-down=1",
        f"--target-kubeconfig={KUBECONFIG_FILE}",
        f"--v={_LOG_LEVELS[name]}",
    )
    its_container = container(
        name,
        inputs.image(name),
        cpu="31m",
        memory="70Mi",
        command=[f"./{name}", *arguments],
        ports=container_ports(metrics=_MANAGER_PORT),
        livenessProbe=probe,
        volumeMounts=_MOUNTS,
    )
    its_container["resources"]["limits"] = {"memory": "1Gi"}
    networks = [f"{keys.TO_NETWORKS_PREFIX}{each}-networks" for each in ("private", "public")]
    policy = {
        "containerName": name,
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": "70Mi"},
        "maxAllowed": {"cpu": "2", "memory": "5G"},
    }
    return _objects(
        name,
        inputs,
        ports={"metrics": _MANAGER_PORT, "providermetrics": _PROVIDER_PORT},
        seed_role=f"system:{name}-runtime",
        its_deployment=_deployment(name, inputs, its_container, reaches=networks),
        policy=policy,
        # An extension adds its container, which manages machines of the provider.
        autoscaler_labels=SEEN_BY_EXTENSIONS,
    )


def _rights_of_manager(_: Inputs) -> Iterator[Object]:
    name = _ROLE.format(MACHINE_CONTROLLER_MANAGER)
    nodes = ("nodes", "nodes/status", "endpoints", "replicationcontrollers", "pods")
    yield cluster_role(
        name,
        rule("", (*nodes, "persistentvolumes", "persistentvolumeclaims"), _EVERY_VERB),
        rule("", "pods/eviction", "create"),
        rule("apps", ("replicasets", "statefulsets", "daemonsets", "deployments"), _EVERY_VERB),
        rule("batch", ("jobs", "cronjobs"), _EVERY_VERB),
        rule("policy", "poddisruptionbudgets", ("list", "watch")),
        rule("storage.k8s.io", "volumeattachments", ("delete", "get", "list", "watch")),
    )
    yield cluster_role_binding(name, MACHINE_CONTROLLER_MANAGER, namespace=KUBE_SYSTEM)
    yield role(name, KUBE_SYSTEM, rule("", "secrets", ("create", "delete", "get", "list")))
    yield role_binding(name, KUBE_SYSTEM, MACHINE_CONTROLLER_MANAGER)


# --- number of machines


@dataclass(frozen=True, slots=True)
class _Group:
    """Group of identical machines. Attributes: name: of their MachineDeployment."""

    name: str
    minimum: int
    maximum: int


_SETTINGS = (
    ("expander", "expander", "least-waste"),
    ("max-graceful-termination-sec", "maxGracefulTerminationSeconds", 600),
    ("max-node-provision-time", "maxNodeProvisionTime", "20m0s"),
    ("scale-down-utilization-threshold", "scaleDownUtilizationThreshold", 0.5),
    ("scale-down-unneeded-time", "scaleDownUnneededTime", "30m0s"),
    ("scale-down-delay-after-add", "scaleDownDelayAfterAdd", "1h0m0s"),
    ("scale-down-delay-after-delete", "scaleDownDelayAfterDelete", "0s"),
    ("scale-down-delay-after-failure", "scaleDownDelayAfterFailure", "3m0s"),
    ("scan-interval", "scanInterval", "10s"),
    ("ignore-daemonsets-utilization", "ignoreDaemonsetsUtilization", False),
    ("v", "verbosity", _LOG_LEVELS[CLUSTER_AUTOSCALER]),
    ("max-empty-bulk-delete", "maxEmptyBulkDelete", 10),
    ("new-pod-scale-up-delay", "newPodScaleUpDelay", "0s"),
)
"""Flag, field of the settings, and default."""


def _can_change(shoot: Object) -> bool:
    """Whether a pool can grow or shrink; otherwise there is no autoscaler."""
    return any(integer(each.get("minimum")) < integer(each.get("maximum")) for each in workers(spec(shoot)))


def _autoscaler(inputs: Inputs) -> list[Object]:
    if not _can_change(inputs.shoot):
        return []
    name = CLUSTER_AUTOSCALER
    its_container = container(
        name,
        inputs.image(name),
        cpu="100m",
        memory="300Mi",
        command=[f"./{name}", *_arguments(inputs)],
        env=[
            {"name": "CONTROL_NAMESPACE", "value": inputs.namespace},
            {"name": "TARGET_KUBECONFIG", "value": KUBECONFIG_FILE},
        ],
        ports=container_ports(metrics=_AUTOSCALER_PORT),
        volumeMounts=_MOUNTS,
    )
    return _objects(
        name,
        inputs,
        ports={"metrics": _AUTOSCALER_PORT},
        seed_role=f"system:{name}-seed",
        its_deployment=_deployment(name, inputs, its_container, reaches=(), revisionHistoryLimit=1),
        policy={"containerName": "*", "controlledValues": "RequestsOnly", "minAllowed": {"memory": "50Mi"}},
    )


def _arguments(inputs: Inputs) -> Iterator[str]:
    settings, groups = inputs.settings(_SETTINGS_FIELD), _groups(inputs)
    yield f"--address=:{_AUTOSCALER_PORT}"
    yield f"--kubeconfig={KUBECONFIG_FILE}"
    yield "--cloud-provider=mcm"
    yield "--stderrthreshold=info"
    yield "--skip-nodes-with-system-pods=false"
    yield "--skip-nodes-with-local-storage=false"
    yield "--expendable-pods-priority-cutoff=-10"
    yield "--balance-similar-node-groups=true"
    ignored = ("node.gardener.cloud/critical-components-not-ready", *(settings.get("ignoreTaints") or ()))
    yield from (f"--ignore-taint={each}" for each in ignored)
    for flag, setting, usual in _SETTINGS:
        given = settings.get(setting)
        yield f"--{flag}={_written(usual if given is None else given)}"
    most = settings.get("maxNodesTotal") or _MOST_NODES
    yield f"--max-nodes-total={most}"
    yield from (f"--nodes={each.minimum}:{each.maximum}:{inputs.namespace}.{each.name}" for each in groups)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _groups(inputs: Inputs) -> list[_Group]:
    """Groups of variable size; empty until the Worker reports its MachineDeployments, and while hibernated."""
    worker = {} if inputs.running is Running.ASLEEP else inputs.worker
    found = [
        _Group(text(each.get("name")), integer(each.get("minimum")), integer(each.get("maximum")))
        for each in mappings_at(worker, "status", "machineDeployments")
    ]
    return sorted((each for each in found if each.maximum > each.minimum), key=lambda group: group.name)


def _rights_of_autoscaler(inputs: Inputs) -> Iterator[Object]:
    if not _can_change(inputs.shoot):
        return
    name, own = _ROLE.format(CLUSTER_AUTOSCALER), (CLUSTER_AUTOSCALER,)
    claims = ("persistentvolumeclaims", "persistentvolumes")
    yield cluster_role(
        name,
        rule("", ("events", "endpoints"), ("create", "patch")),
        rule("", "pods/eviction", "create"),
        rule("", "pods/status", "update"),
        rule("", "endpoints", ("get", "update"), names=own),
        rule("", "nodes", ("watch", "list", "get", "update")),
        rule("", ("namespaces", "pods", "services", "replicationcontrollers", *claims), _LOOK),
        rule(("apps", "extensions"), ("daemonsets", "replicasets", "statefulsets"), _LOOK),
        rule("policy", "poddisruptionbudgets", ("watch", "list")),
        rule("storage.k8s.io", ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities"), _LOOK),
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", ("get", "update"), names=own),
        rule(("batch", "extensions"), "jobs", ("get", "list", "patch", "watch")),
        rule("batch", ("jobs", "cronjobs"), ("get", "list", "watch")),
    )
    yield cluster_role_binding(name, CLUSTER_AUTOSCALER, namespace=KUBE_SYSTEM)
    status = (f"{CLUSTER_AUTOSCALER}-status",)
    yield role(
        name,
        KUBE_SYSTEM,
        rule("", "configmaps", ("watch", "list", "get", "create")),
        rule("", "configmaps", ("delete", "update"), names=status),
    )
    yield role_binding(name, KUBE_SYSTEM, CLUSTER_AUTOSCALER)


# --- both

MANAGER = Component(
    name=MACHINE_CONTROLLER_MANAGER,
    title=MACHINE_CONTROLLER_MANAGER,
    objects=_manager,
    contents=_rights_of_manager,
    has_bundles=True,
    results=[NAMESPACE],
    after=[
        *("credentials", "referenced", "infrastructure-ready", "connection", "systems-ready", "network-ready"),
        "autoscaler-stopped",
    ],
    is_left_asleep=False,
    is_put_to_sleep_later=True,
    is_required=always,
)
AUTOSCALER = Component(
    name=CLUSTER_AUTOSCALER,
    title="cluster autoscaler",
    objects=_autoscaler,
    contents=_rights_of_autoscaler,
    has_bundles=True,
    task="autoscaler",
    results=[NAMESPACE, WORKER],
    after=["machine-deployments", "node-agents"],
    is_required=_can_change,
)
