"""Two programs for the machines of a Shoot: one creates machines, the other decides how many."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components.component import Component, always
from components.control_plane import KUBECONFIG_FILE, Running
from components.inputs import Inputs
from components.manifest import manifest, without
from components.results import NAMESPACE, WORKER
from components.secrets.tables import TOKEN_KUBECONFIG
from components.worker_roles import CLUSTER_AUTOSCALER, MACHINE_CONTROLLER_MANAGER
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from gardener.garden.shoots import workers
from kube.objects import Object, integer, spec, text
from kube.paths import mappings_at

_MOST_NODES = 256
_SETTINGS_FIELD = "clusterAutoscaler"


def _objects(file: str, name: str, inputs: Inputs, **values: Any) -> list[Object]:
    found = manifest(
        __file__,
        file,
        image=inputs.image(name),
        namespace=inputs.namespace,
        uid=inputs.namespace_uid,
        kubeconfig=inputs.secrets.current(TOKEN_KUBECONFIG).name,
        replicas=inputs.running.replicas(1),
        **values,
    )
    return found if inputs.autoscaled else without(found, VERTICAL_POD_AUTOSCALERS.kind)


def _manager(inputs: Inputs) -> list[Object]:
    return _objects("machine_controller_manager.yaml", MACHINE_CONTROLLER_MANAGER, inputs)


def _rights_of_manager(_: Inputs) -> list[Object]:
    return manifest(__file__, "machine_controller_manager_rights.yaml")


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
    ("v", "verbosity", 2),
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
    command = [f"./{CLUSTER_AUTOSCALER}", *_arguments(inputs)]
    return _objects("cluster_autoscaler.yaml", CLUSTER_AUTOSCALER, inputs, command=command)


def _rights_of_autoscaler(inputs: Inputs) -> list[Object]:
    return manifest(__file__, "cluster_autoscaler_rights.yaml") if _can_change(inputs.shoot) else []


def _arguments(inputs: Inputs) -> Iterator[str]:
    settings, groups = inputs.settings(_SETTINGS_FIELD), _groups(inputs)
    yield "--address=:8085"
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


# --- both

MANAGER = Component(
    name=MACHINE_CONTROLLER_MANAGER,
    title=MACHINE_CONTROLLER_MANAGER,
    objects=_manager,
    contents=_rights_of_manager,
    results=[NAMESPACE],
    has_bundles=True,
    after=[
        *("credentials", "referenced", "infrastructure-ready", "connection", "systems-ready", "network-ready"),
        "autoscaler-stopped",
    ],
    is_left_asleep=False,
    is_put_to_sleep_later=True,
    is_started_after_restoration=True,
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
