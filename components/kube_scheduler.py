"""The scheduler of a Shoot with workers."""

from collections.abc import Iterator

import yaml

from components.access import cluster_role_binding
from components.component import OF_DEPLOYMENT, Component
from components.control_plane import (
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    access_secret_name,
    config_map_volume,
    controllers_pod,
    feature_gates_argument,
    kubeconfig_volume,
    secret_volume,
)
from components.inputs import Inputs
from components.kubernetes_controllers import around, of_pods
from components.kubernetes_versions import known_features, version_of
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.secrets import tables
from gardener.references import inject_annotations, make_unique
from kube.objects import Object, key, mapping
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "kube-scheduler"
LABELS = {"app": "kubernetes", "role": "scheduler"}
_SETTINGS, _SERVER_SECRET = "kubeScheduler", f"{NAME}-server"
_PORT = 10259
_SERVER, _CLIENT_CA, _CONFIG = (f"/var/lib/{NAME}-{each}" for each in ("server", "client-ca", "config"))
_BIN_PACKING = "bin-packing"


def _objects(inputs: Inputs) -> Iterator[Object]:
    yield _config(inputs)
    yield from around(NAME, inputs, labels=LABELS, metrics=_PORT)
    yield inject_annotations(of_pods(NAME, inputs, _pod(inputs), labels=LABELS, replicas=1))


def _rights(_: Inputs) -> Iterator[Object]:
    for suffix, role in (("-volume", "system:volume-scheduler"), ("", f"system:{NAME}")):
        yield cluster_role_binding(f"gardener.cloud:target:{NAME}{suffix}", NAME, namespace=KUBE_SYSTEM, role=role)


def _config(inputs: Inputs) -> Object:
    config: Object = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": KUBECONFIG_FILE},
        "leaderElection": {"leaderElect": True},
    }
    if inputs.settings(_SETTINGS).get("profile") == _BIN_PACKING:
        config["profiles"] = [_packing_profile()]
    written = yaml.dump(config, Dumper=Dumper, sort_keys=True)
    return make_unique(made(CONFIG_MAPS, f"{NAME}-config", namespace=inputs.namespace, data={"config.yaml": written}))


def _packing_profile() -> Object:
    """Profile that prefers nodes with the highest utilization."""
    fit = {
        "name": "NodeResourcesFit",
        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": _RESOURCES}},
    }
    off = [{"name": name} for name in ("NodeResourcesBalancedAllocation", "NodeResourcesFit")]
    score = {"disabled": off, "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}
    return {"schedulerName": f"{_BIN_PACKING}-scheduler", "pluginConfig": [fit], "plugins": {"score": score}}


_RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def _pod(inputs: Inputs) -> Object:
    secrets = inputs.secrets
    bundle = secrets.bundle(tables.CA_CLIENT.name).name
    source = {"secret": {"name": bundle, "items": [{"key": "bundle.crt", "path": "bundle.crt"}]}}
    volumes = {
        "client-ca": (_CLIENT_CA, {"projected": {"sources": [source], "defaultMode": 0o644}}),
        f"{NAME}-server": (_SERVER, secret_volume(secrets.current(_SERVER_SECRET).name, is_private=True)),
        f"{NAME}-config": (_CONFIG, config_map_volume(key(_config(inputs)).name)),
        "kubeconfig": (
            KUBECONFIG_DIRECTORY,
            kubeconfig_volume(secrets.current(tables.TOKEN_KUBECONFIG).name, access_secret_name(NAME)),
        ),
    }
    return controllers_pod(
        NAME,
        inputs.image_of_kubernetes(NAME),
        cpu="23m",
        memory="64Mi",
        port=_PORT,
        arguments=arguments(inputs),
        volumes=volumes,
    )


def arguments(inputs: Inputs) -> list[str]:
    features = known_features(mapping(inputs.settings(_SETTINGS).get("featureGates")), version_of(inputs.version))
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


COMPONENT = Component(
    name=NAME,
    title="Kubernetes scheduler",
    objects=_objects,
    contents=_rights,
    secrets=lambda plane: [plane.component_server(NAME)],
    readiness=OF_DEPLOYMENT,
    task="scheduler",
    has_bundles=True,
    after=["secrets", "resource-manager-ready"],
    is_left_asleep=False,
    is_on_this_computer=True,
)
