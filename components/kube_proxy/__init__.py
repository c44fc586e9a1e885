"""Routing of Services to pods on each node: a DaemonSet for each combination of pool and Kubernetes version.

Nodes keep their version until they are replaced, so the DaemonSet of an old version stays until then.
"""

import base64
from typing import NamedTuple

import yaml

from components.component import ON_NODES, Component, Read
from components.control_plane import in_shoot
from components.inputs import Inputs
from components.manifest import manifest
from components.results import ADDRESS
from components.worker_pools.pools import POOL, VERSION, pools_of
from gardener.references import collectable_kind, make_unique, stamp
from kube.kubeconfigs import kubeconfig
from kube.objects import Object, labels, mapping, spec
from kube.paths import at
from kube.resources import NODES
from kube.yaml import Dumper

NAME = "kube-proxy"
_SETTINGS = "kubeProxy"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class Nodes(NamedTuple):
    """Nodes with the same DaemonSet. Attributes: version: of Kubernetes, such as `1.30.14`."""

    pool: str
    version: str


def _nodes(inputs: Inputs) -> list[Nodes]:
    """Existing and desired nodes.

    Raises:
        InputError: a pool is invalid.
    """
    wanted = {Nodes(each.name, each.version) for each in pools_of(inputs.shoot, inputs.profile)}
    living = (labels(each) for each in inputs.live["nodes"])
    return sorted(wanted | {Nodes(each[POOL], each[VERSION]) for each in living if each.get(VERSION)})


def _mode(inputs: Inputs) -> str:
    return "ipvs" if inputs.settings(_SETTINGS).get("mode") == "IPVS" else "iptables"


def _objects(inputs: Inputs) -> list[Object]:
    own, managed = {"component": NAME}, f"shoot-core-{NAME}"
    central = _central(inputs)
    unique = [make_unique(each) if collectable_kind(each) else each for each in central]
    found = in_shoot(managed, unique, namespace=inputs.namespace, labels=own)
    for each in _nodes(inputs):
        its_labels = {**own, "role": "pool", "pool-name": each.pool, "kubernetes-version": each.version}
        name = f"{managed}-{each.pool}-v{each.version}"
        *_, daemon_set = stamp([*central, *_daemon_set(inputs, each)])
        found += in_shoot(name, [daemon_set], namespace=inputs.namespace, labels=its_labels)
    return found


def _central(inputs: Inputs) -> list[Object]:
    """Objects for all nodes."""
    content = kubeconfig(inputs.namespace, server=inputs.url, ca_bundle=inputs.ca_bundle, user={"tokenFile": _TOKEN})
    return manifest(
        __file__,
        kubeconfig=base64.b64encode(content).decode(),
        config=yaml.dump(_configuration(inputs), Dumper=Dumper, sort_keys=True),
    )


def _daemon_set(inputs: Inputs, nodes: Nodes) -> list[Object]:
    image = inputs.image_of_kubernetes(NAME, nodes.version)
    return manifest(
        __file__, "daemon_set.yaml", image=image, pool=nodes.pool, version=nodes.version, mode=_mode(inputs)
    )


def _configuration(inputs: Inputs) -> Object:
    config: Object = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"/var/lib/{NAME}-kubeconfig/kubeconfig"},
        "conntrack": {"maxPerCore": 524288},
        "metricsBindAddress": "0.0.0.0:10249",
        "mode": _mode(inputs),
    }
    config["clusterCIDR"] = inputs.pod_network
    if features := mapping(inputs.settings(_SETTINGS).get("featureGates")):
        config["featureGates"] = features
    return config


COMPONENT = Component(
    name=NAME,
    title=f"{NAME} system component",
    objects=_objects,
    has_bundles=True,
    results=[ADDRESS],
    reads={"nodes": Read(NODES, selector=POOL)},
    after=[*ON_NODES, "identity"],
    is_wanted=lambda shoot: at(spec(shoot), "kubernetes", _SETTINGS, "enabled") is not False,
)
