"""The operator of Etcds, which runs the etcd clusters of Shoots."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.access import READ, cluster_role, cluster_role_binding, rule, service_account
from components.monitors import CACHE, service_monitor
from components.parts import GARDEN, allowed_ports, autoscaler, disruption_budget, in_seed
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import (
    REACHES_API_SERVER,
    SCRAPED_IN_SEED,
    container,
    deployment,
    port,
    service,
)
from gardener import keys
from gardener.api.kinds import SERVICE_MONITORS
from kube.objects import Object
from kube.paths import at

NAME = "etcd-druid"
_ROLE = "gardener.cloud:system:etcd-druid"
_LABELS = {keys.ROLE: NAME}
_HIGHLY_AVAILABLE = {**_LABELS, keys.HIGH_AVAILABILITY_TYPE: "controller"}
_PORT = 8080
_WRITE = (*READ, "create", "update", "patch", "delete")
_CHANGE = ("get", "list", "patch", "update", "watch")
_FLAGS = (
    ("workers", ("etcdController", "workers"), 50),
    ("custodian-workers", ("custodianController", "workers"), 10),
    ("compaction-workers", ("backupCompactionController", "workers"), 3),
    ("enable-backup-compaction", ("backupCompactionController", "enableBackupCompaction"), False),
    ("etcd-events-threshold", ("backupCompactionController", "eventsThreshold"), 1_000_000),
    ("metrics-scrape-wait-duration", ("backupCompactionController", "metricsScrapeWaitDuration"), "1m0s"),
    ("active-deadline-duration", ("backupCompactionController", "activeDeadlineDuration"), None),
)
"""Flag, path of its value in the configuration, and the default."""


def _objects(inputs: SeedInputs) -> list[Object]:
    return in_seed(NAME, _contents(inputs))


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield service_account(NAME, GARDEN, labels=_LABELS)
    yield cluster_role(_ROLE, *_rules(), labels=_LABELS)
    yield cluster_role_binding(_ROLE, NAME, namespace=GARDEN, labels=_LABELS)
    yield _deployment(inputs)
    scraped = {SCRAPED_IN_SEED: allowed_ports(_PORT)}
    ports = [port("metrics", _PORT)]
    yield service(NAME, ports=ports, selects=_LABELS, labels=_HIGHLY_AVAILABLE, annotations=scraped)
    yield disruption_budget(NAME, GARDEN, labels=_LABELS)
    policy = {"containerName": "*", "minAllowed": {"memory": "100M"}}
    yield autoscaler(f"{NAME}-vpa", GARDEN, deployment=NAME, policy=policy, labels=_LABELS)
    if inputs.serves(SERVICE_MONITORS):
        yield service_monitor(CACHE, NAME, selects=_LABELS)


def _deployment(inputs: SeedInputs) -> Object:
    arguments = [
        "--enable-leader-election=true",
        "--ignore-operation-annotation=false",
        "--disable-etcd-serviceaccount-automount=true",
        *_flags(inputs.config.etcd_config or {}),
    ]
    its_container = container(
        NAME, inputs.images.etcd_druid, cpu="50m", memory="128Mi", args=arguments, ports=[{"containerPort": _PORT}]
    )
    its_container["resources"]["limits"] = {"memory": "512Mi"}
    pod = {
        "containers": [its_container],
        "priorityClassName": "gardener-system-800",
        "serviceAccountName": NAME,
    }
    return deployment(
        NAME,
        labels=_HIGHLY_AVAILABLE,
        selects=_LABELS,
        pod_labels=REACHES_API_SERVER,
        pod=pod,
        revisionHistoryLimit=1,
    )


def _flags(config: Mapping[str, Any]) -> Iterator[str]:
    for name, path, default in _FLAGS:
        value = at(dict(config), *path)
        value = default if value is None else value
        if value is not None:
            yield f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
    if features := at(dict(config), "featureGates"):
        yield f"--feature-gates={','.join(f'{name}={str(on).lower()}' for name, on in sorted(features.items()))}"


def _rules() -> Iterator[Object]:
    yield rule("", "pods", (*READ, "delete", "deletecollection"))
    yield rule("", ("secrets", "endpoints"), _CHANGE)
    yield rule("", "events", ("create", *READ, "patch", "update"))
    yield rule("", "serviceaccounts", _WRITE)
    yield rule("rbac.authorization.k8s.io", ("roles", "rolebindings"), _WRITE)
    yield rule("", ("services", "configmaps"), (*_CHANGE, "create", "delete"))
    yield rule("apps", "statefulsets", (*_CHANGE, "create", "delete"))
    yield rule("batch", "jobs", _WRITE)
    kinds = ("etcds", "etcdcopybackupstasks")
    yield rule("druid.gardener.cloud", kinds, _WRITE)
    parts = [f"{kind}/{part}" for kind in kinds for part in ("status", "finalizers")]
    yield rule("druid.gardener.cloud", parts, ("get", "update", "patch", "create"))
    yield rule("coordination.k8s.io", "leases", (*_WRITE, "deletecollection"))
    yield rule("", "persistentvolumeclaims", READ)
    yield rule("policy", "poddisruptionbudgets", _WRITE)


COMPONENT = SeedComponent(
    name=NAME,
    title="ETCD Druid",
    images=["etcd_druid"],
    objects=_objects,
    asks_for=[SERVICE_MONITORS],
    is_of_garden=True,
)
