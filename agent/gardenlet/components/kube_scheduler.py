"""The scheduler of a Shoot with workers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from agent.gardenlet.components.access import cluster_role_binding
from agent.gardenlet.components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    REACHES_SHOOT,
    SEEN_BY_EXTENSIONS,
    Running,
    access_secret,
    access_secret_name,
    config_map_volume,
    controllers_pod,
    feature_gates_argument,
    in_shoot,
    kubeconfig_volume,
    secret_volume,
)
from agent.gardenlet.components.kubernetes_versions import known_features, version_of
from agent.gardenlet.components.namespaces import KUBE_SYSTEM
from agent.gardenlet.components.parts import TO_DNS, allowed_ports, autoscaler, disruption_budget, made
from agent.gardenlet.components.workloads import deployment, port, service
from gardener import keys
from gardener.references import inject_annotations, make_unique
from kube.objects import Object, key, mapping
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "kube-scheduler"
LABELS = {"app": "kubernetes", "role": "scheduler"}
_PORT = 10259
_SERVER, _CLIENT_CA, _CONFIG = (f"/var/lib/{NAME}-{each}" for each in ("server", "client-ca", "config"))
_BIN_PACKING = "bin-packing"
_RESTARTED_IN_MAINTENANCE = {"maintenance.gardener.cloud/restart": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Names of Secrets of the secrets manager."""

    ca_client_bundle: str
    server: str
    generic_token_kubeconfig: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    version: of Kubernetes, such as `1.30.14`.
    settings: `spec.kubernetes.kubeScheduler` of the Shoot.
    autoscaled: whether there are VerticalPodAutoscalers.
    """

    namespace: str
    image: str
    version: str
    secrets: Secrets
    settings: Mapping[str, Any] = field(default_factory=dict)
    running: Running = Running.AWAKE
    autoscaled: bool = True


def objects(values: Values) -> list[Object]:
    return [
        _config(values),
        _service(values),
        access_secret(NAME, values.namespace),
        _deployment(values),
        disruption_budget(NAME, values.namespace, labels=LABELS),
        *([_autoscaler(values)] if values.autoscaled else []),
        *in_shoot(f"shoot-core-{NAME}", _rights(), namespace=values.namespace),
    ]


def _rights() -> Iterator[Object]:
    for suffix, role in (("-volume", "system:volume-scheduler"), ("", f"system:{NAME}")):
        yield cluster_role_binding(f"gardener.cloud:target:{NAME}{suffix}", NAME, namespace=KUBE_SYSTEM, role=role)


def _config(values: Values) -> Object:
    config: Object = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": KUBECONFIG_FILE},
        "leaderElection": {"leaderElect": True},
    }
    if values.settings.get("profile") == _BIN_PACKING:
        config["profiles"] = [_packing_profile()]
    written = yaml.dump(config, Dumper=Dumper, sort_keys=True)
    return make_unique(made(CONFIG_MAPS, f"{NAME}-config", namespace=values.namespace, data={"config.yaml": written}))


def _packing_profile() -> Object:
    """Pods go where most is in use."""
    fit = {
        "name": "NodeResourcesFit",
        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": _RESOURCES}},
    }
    off = [{"name": name} for name in ("NodeResourcesBalancedAllocation", "NodeResourcesFit")]
    score = {"disabled": off, "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}
    return {"schedulerName": f"{_BIN_PACKING}-scheduler", "pluginConfig": [fit], "plugins": {"score": score}}


_RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def _service(values: Values) -> Object:
    return service(
        NAME,
        namespace=values.namespace,
        ports=[port("metrics", _PORT)],
        selects=LABELS,
        labels=LABELS,
        annotations={ALL_SCRAPE_TARGETS: allowed_ports(_PORT)},
    )


def _autoscaler(values: Values) -> Object:
    policy = {
        "containerName": "*",
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": "50Mi"},
        "maxAllowed": {"cpu": "4", "memory": "10G"},
    }
    return autoscaler(f"{NAME}-vpa", values.namespace, deployment=NAME, policy=policy)


def _deployment(values: Values) -> Object:
    return inject_annotations(
        deployment(
            NAME,
            namespace=values.namespace,
            labels={**LABELS, **CONTROL_PLANE, **SEEN_BY_EXTENSIONS, keys.HIGH_AVAILABILITY_TYPE: "controller"},
            selects=LABELS,
            pod_labels={**CONTROL_PLANE, **_RESTARTED_IN_MAINTENANCE, TO_DNS: keys.ALLOWED, **REACHES_SHOOT},
            pod=_pod(values),
            replicas=values.running.replicas(1),
            revisionHistoryLimit=1,
        )
    )


def _pod(values: Values) -> Object:
    secrets = values.secrets
    source = {"secret": {"name": secrets.ca_client_bundle, "items": [{"key": "bundle.crt", "path": "bundle.crt"}]}}
    volumes = {
        "client-ca": (_CLIENT_CA, {"projected": {"sources": [source], "defaultMode": 0o644}}),
        f"{NAME}-server": (_SERVER, secret_volume(secrets.server, is_private=True)),
        f"{NAME}-config": (_CONFIG, config_map_volume(key(_config(values)).name)),
        "kubeconfig": (
            KUBECONFIG_DIRECTORY,
            kubeconfig_volume(secrets.generic_token_kubeconfig, access_secret_name(NAME)),
        ),
    }
    return controllers_pod(
        NAME, values.image, cpu="23m", memory="64Mi", port=_PORT, arguments=arguments(values), volumes=volumes
    )


def arguments(values: Values) -> list[str]:
    features = known_features(mapping(values.settings.get("featureGates")), version_of(values.version))
    return [
        f"--config={_CONFIG}/config.yaml",
        *(f"--{flag}={KUBECONFIG_FILE}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")),
        f"--client-ca-file={_CLIENT_CA}/bundle.crt",
        f"--tls-cert-file={_SERVER}/tls.crt",
        f"--tls-private-key-file={_SERVER}/tls.key",
        f"--secure-port={_PORT}",
        *feature_gates_argument(features),
        "--v=2",
    ]
