"""The scheduler of a Shoot with workers."""

import yaml

from components.component import OF_DEPLOYMENT, Component, always
from components.control_plane import KUBECONFIG_FILE, feature_gates_argument
from components.inputs import Inputs
from components.kubernetes_versions import known_features, version_of
from components.manifest import manifest, without
from components.parts import made
from components.secrets import tables
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from gardener.references import inject_annotations, kind_of, make_unique
from kube.objects import Object, key, mapping
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "kube-scheduler"
_SETTINGS, _SERVER_SECRET = "kubeScheduler", f"{NAME}-server"
_SERVER, _CLIENT_CA, _CONFIG = (f"/var/lib/{NAME}-{each}" for each in ("server", "client-ca", "config"))
_BIN_PACKING = "bin-packing"


def _objects(inputs: Inputs) -> list[Object]:
    config_map = _config(inputs)
    found = manifest(
        __file__,
        image=inputs.image_of_kubernetes(NAME),
        namespace=inputs.namespace,
        replicas=inputs.running.replicas(1),
        command=[f"/usr/local/bin/{NAME}", *arguments(inputs)],
        config_map=key(config_map).name,
        certificate=inputs.secrets.current(_SERVER_SECRET).name,
        client_ca=inputs.secrets.bundle(tables.CA_CLIENT.name).name,
        kubeconfig=inputs.secrets.current(tables.TOKEN_KUBECONFIG).name,
    )
    wanted = found if inputs.autoscaled else without(found, VERTICAL_POD_AUTOSCALERS.kind)
    return [config_map, *(inject_annotations(each) if kind_of(each) else each for each in wanted)]


def _rights(_: Inputs) -> list[Object]:
    return manifest(__file__, "rights.yaml")


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


def arguments(inputs: Inputs) -> list[str]:
    features = known_features(mapping(inputs.settings(_SETTINGS).get("featureGates")), version_of(inputs.version))
    return [
        f"--config={_CONFIG}/config.yaml",
        *(f"--{flag}={KUBECONFIG_FILE}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")),
        f"--client-ca-file={_CLIENT_CA}/bundle.crt",
        f"--tls-cert-file={_SERVER}/tls.crt",
        f"--tls-private-key-file={_SERVER}/tls.key",
        "--secure-port=10259",
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
    is_required=always,
)
