"""Objects that controller manager and scheduler of a Shoot have in common."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    REACHES_SHOOT,
    SEEN_BY_EXTENSIONS,
    access_secret,
)
from components.inputs import Inputs
from components.parts import TO_DNS, allowed_ports, autoscaler, disruption_budget
from components.workloads import deployment, port, service
from gardener import keys
from kube.objects import Object

_RESTARTED_IN_MAINTENANCE = {"maintenance.gardener.cloud/restart": "true"}


def around(
    name: str, inputs: Inputs, *, labels: Mapping[str, str], metrics: int, container: str = "*", **of_service: Any
) -> Iterator[Object]:
    """Objects beside the Deployment.

    Args:
        name: of the component.
        inputs: of the component.
        labels: of its pods.
        metrics: port of the metrics.
        container: the one whose resources the autoscaler sets.
        of_service: fields of the Service.
    """
    yield service(
        name,
        namespace=inputs.namespace,
        ports=[port("metrics", metrics)],
        selects=labels,
        labels=labels,
        annotations={ALL_SCRAPE_TARGETS: allowed_ports(metrics)},
        **of_service,
    )
    yield access_secret(name, inputs.namespace)
    yield disruption_budget(name, inputs.namespace, labels=labels)
    if inputs.autoscaled:
        policy = {
            "containerName": container,
            "controlledValues": "RequestsOnly",
            "minAllowed": {"memory": "50Mi"},
            "maxAllowed": {"cpu": "4", "memory": "10G"},
        }
        yield autoscaler(f"{name}-vpa", inputs.namespace, deployment=name, policy=policy)


def of_pods(name: str, inputs: Inputs, pod: Object, *, labels: Mapping[str, str], replicas: int) -> Object:
    """The Deployment. Args: replicas: while the control plane runs."""
    return deployment(
        name,
        namespace=inputs.namespace,
        labels={**labels, **CONTROL_PLANE, **SEEN_BY_EXTENSIONS, keys.HIGH_AVAILABILITY_TYPE: "controller"},
        selects=labels,
        pod_labels={**CONTROL_PLANE, **_RESTARTED_IN_MAINTENANCE, TO_DNS: keys.ALLOWED, **REACHES_SHOOT},
        pod=pod,
        replicas=inputs.running.replicas(replicas),
        revisionHistoryLimit=1,
    )
