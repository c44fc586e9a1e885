"""Building blocks of components."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from gardener import keys
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from gardener.conditions import RESOURCES_GOOD
from gardener.health.checks import deployment
from gardener.health.checks.rule import CheckError
from gardener.managed_resource.bundle import managed_resource
from kube.objects import Object, condition, integer, is_deleting, metadata
from kube.paths import at
from kube.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, Resource

GARDEN = "garden"
"""Namespace of components for the whole seed."""
SEED_CLASS = "seed"
"""Class of ManagedResources that the resource manager of the seed applies."""
MOST_REVISIONS = 2

CARE_CONDITION_TYPE = "care.gardener.cloud/condition-type"
"""Label of ManagedResources: the condition that they count for, unless it is the default."""
TO_DNS = "networking.gardener.cloud/to-dns"
"""Label of pods, like the next one, that lets them reach a target by policies of their namespace."""
TO_RUNTIME_API_SERVER = "networking.gardener.cloud/to-runtime-apiserver"

_CHECKSUM = "checksum/pod-template"


def made(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: Any,
) -> Object:
    """Build an object. Args: fields: top-level fields other than metadata."""
    meta: Object = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = dict(labels)
    if annotations:
        meta["annotations"] = dict(annotations)
    return {**resource.type_meta, "metadata": meta, **fields}


def in_seed(name: str, objects: Iterable[Object], *, namespace: str = GARDEN, condition: str = "") -> list[Object]:
    """A ManagedResource that is a component of the seed, with its Secret.

    Args:
        name: of the ManagedResource.
        objects: that it applies.
        namespace: of both.
        condition: the condition of the Seed that it counts for; empty: the one of system components.
    """
    labels = {keys.ROLE: keys.ROLE_SEED_SYSTEM_COMPONENT}
    if condition:
        labels[CARE_CONDITION_TYPE] = condition
    return managed_resource(name, namespace, objects, resource_class=SEED_CLASS, labels=labels)


def allowed_ports(*ports: int) -> str:
    """Value of an annotation that lets pods reach these ports of a Service."""
    return orjson.dumps([{"protocol": "TCP", "port": port} for port in ports]).decode()


def disruption_budget(
    name: str, namespace: str, *, labels: Mapping[str, str], selects: Mapping[str, str] | None = None
) -> Object:
    """Budget of one unavailable pod; unhealthy pods may always be evicted."""
    spec = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": dict(selects or labels)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return made(POD_DISRUPTION_BUDGETS, name, namespace=namespace, labels=labels, spec=spec)


def autoscaler(
    name: str,
    namespace: str,
    *,
    deployment: str,
    policy: Object,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A VerticalPodAutoscaler of a Deployment. Args: policy: of its containers."""
    target = {**DEPLOYMENTS.type_meta, "name": deployment}
    return autoscaler_of(target, name, namespace, policies=[policy], labels=labels)


def autoscaler_of(
    target: Object,
    name: str,
    namespace: str,
    *,
    policies: Sequence[Object],
    labels: Mapping[str, str] | None = None,
) -> Object:
    """Args: target: a reference to the scaled object. policies: of containers."""
    spec = {
        "resourcePolicy": {"containerPolicies": list(policies)},
        "targetRef": target,
        "updatePolicy": {"updateMode": "Auto"},
    }
    return made(VERTICAL_POD_AUTOSCALERS, name, namespace=namespace, labels=labels, spec=spec)


def spread(deployment: Object, *, zones: Sequence[str]) -> Object:
    """The Deployment with constraints that spread its pods over nodes, and over zones if there are several.

    They count only pods of this exact template, since former pods are about to be deleted. Therefore the template must
    not be changed afterwards.
    """
    template = deployment["spec"]["template"]
    body = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    labels = {**template["metadata"]["labels"], _CHECKSUM: hashlib.sha256(body).hexdigest()[:16]}
    counted = {name: text for name, text in labels.items() if name in {"app", keys.ROLE, _CHECKSUM}}
    constraints = [_constraint("kubernetes.io/hostname", "ScheduleAnyway", counted)]
    if len(zones) > 1:
        constraints.append(_constraint("topology.kubernetes.io/zone", "DoNotSchedule", counted))
    spec = {**template["spec"], "topologySpreadConstraints": constraints}
    meta = {**template["metadata"], "labels": labels}
    return {**deployment, "spec": {**deployment["spec"], "template": {**template, "metadata": meta, "spec": spec}}}


def _constraint(topology: str, otherwise: str, counted: Mapping[str, str]) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": dict(counted)},
    }


def deployment_unready(live: Object | None) -> str:
    """Reason why a Deployment is not available or not rolled out; empty if it is."""
    if live is None:
        return "it does not exist"
    if is_deleting(live):
        return "it is being deleted"
    try:
        return deployment.health(live) or deployment.progress(live) or ""
    except CheckError as error:
        return str(error)


def managed_resource_unready(managed: Object | None) -> str:
    """Reason why a ManagedResource is not applied and healthy; empty if it is."""
    if managed is None:
        return "it does not exist"
    observed, generation = integer(at(managed, "status", "observedGeneration")), metadata(managed)["generation"]
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    for of_type, status in RESOURCES_GOOD.items():
        found = condition(managed, of_type) or {}
        if found.get("status") != status:
            return f"condition {of_type} is {found.get('status')}: {found.get('message')}"
    return ""
