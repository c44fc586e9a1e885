"""Routing of Services to pods on each node: a DaemonSet for each combination of pool and Kubernetes version.

Nodes keep their version until they are replaced, so the DaemonSet of an old version stays until then.
"""

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from components.access import cluster_role_binding, service_account
from components.component import ON_NODES, Component, Read
from components.control_plane import in_shoot
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.results import ADDRESS
from components.shoot_pods import CRITICAL, SECCOMP, SYSTEM_COMPONENT
from components.worker_pools.pools import POOL, VERSION, pools_of
from components.workloads import ON_ALL_NODES, container, daemon_set, service
from gardener.references import make_unique, stamp
from kube.kubeconfigs import kubeconfig
from kube.objects import Object, labels, mapping, spec
from kube.paths import at
from kube.resources import CONFIG_MAPS, NODES, SECRETS
from kube.yaml import Dumper

NAME = "kube-proxy"
_LABELS = {"app": "kubernetes", "role": "proxy"}
_SETTINGS = "kubeProxy"
_METRICS, _HEALTH = 10249, 10256
_KUBECONFIG, _CONFIG = f"/var/lib/{NAME}-kubeconfig", f"/var/lib/{NAME}-config"
_STATE = f"/var/lib/{NAME}"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_CLEANUP = f"{NAME}-cleanup-script"
_CLEANUP_SCRIPT = f"""#!/bin/sh
# Removes the rules of the mode before, once it is another one.
set -e
before="$(cat "$1")"
if [ -n "$before" ] && [ "$before" != "$KUBE_PROXY_MODE" ]; then
  /usr/local/bin/{NAME} --v=2 --cleanup --config={_CONFIG}/config.yaml --proxy-mode="$before"
fi
echo "$KUBE_PROXY_MODE" > "$1"
"""
_FROM_HOST = (
    ("ssl-certs-hosts", "/usr/share/ca-certificates", "/etc/ssl/certs"),
    ("systembussocket", "/var/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"),
    ("kernel-modules", "/lib/modules", "/lib/modules"),
)
"""Volume, path on the host, and in the container."""


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
    found = in_shoot(managed, _central(inputs), namespace=inputs.namespace, labels=own)
    for each in _nodes(inputs):
        its_labels = {**own, "role": "pool", "pool-name": each.pool, "kubernetes-version": each.version}
        name = f"{managed}-{each.pool}-v{each.version}"
        found += in_shoot(name, [_daemon_set(inputs, each)], namespace=inputs.namespace, labels=its_labels)
    return found


def _central(inputs: Inputs) -> Iterator[Object]:
    yield from map(make_unique, _files(inputs))
    ports = [{"name": "metrics", "port": _METRICS, "protocol": "TCP"}]
    yield service(NAME, namespace=KUBE_SYSTEM, ports=ports, selects=_LABELS, labels=_LABELS, clusterIP="None")
    yield service_account(NAME, KUBE_SYSTEM)
    yield cluster_role_binding(
        "gardener.cloud:target:node-proxier", NAME, namespace=KUBE_SYSTEM, role="system:node-proxier"
    )


def _files(inputs: Inputs) -> list[Object]:
    content = kubeconfig(inputs.namespace, server=inputs.url, ca_bundle=inputs.ca_bundle, user={"tokenFile": _TOKEN})
    data = {"kubeconfig": base64.b64encode(content).decode()}
    written = yaml.dump(_configuration(inputs), Dumper=Dumper, sort_keys=True)
    scripts = {**_LABELS, **SYSTEM_COMPONENT}
    return [
        made(SECRETS, NAME, namespace=KUBE_SYSTEM, type="Opaque", data=data),
        made(CONFIG_MAPS, f"{NAME}-config", namespace=KUBE_SYSTEM, data={"config.yaml": written}),
        made(CONFIG_MAPS, _CLEANUP, namespace=KUBE_SYSTEM, labels=scripts, data={"cleanup.sh": _CLEANUP_SCRIPT}),
    ]


def _configuration(inputs: Inputs) -> Object:
    config: Object = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{_KUBECONFIG}/kubeconfig"},
        "conntrack": {"maxPerCore": 524288},
        "metricsBindAddress": f"0.0.0.0:{_METRICS}",
        "mode": _mode(inputs),
    }
    config["clusterCIDR"] = inputs.pod_network
    if features := mapping(inputs.settings(_SETTINGS).get("featureGates")):
        config["featureGates"] = features
    return config


# --- on the nodes


def _daemon_set(inputs: Inputs, nodes: Nodes) -> Object:
    selects = {**_LABELS, "pool": nodes.pool, "version": nodes.version}
    own = {**SYSTEM_COMPONENT, **CRITICAL}
    made_set = daemon_set(
        f"{NAME}-{nodes.pool}-v{nodes.version}",
        namespace=KUBE_SYSTEM,
        labels=own,
        selects=selects,
        pod_labels=own,
        pod=_pod(inputs, nodes),
        updateStrategy={"type": "RollingUpdate"},
    )
    *_, stamped = stamp([*_files(inputs), made_set])
    return stamped


def _pod(inputs: Inputs, nodes: Nodes) -> Object:
    image = inputs.image_of_kubernetes(NAME, nodes.version)
    settled: dict[str, Any] = {
        "cpu": "20m",
        "memory": "64Mi",
        "volumeMounts": [
            {"name": "kubeconfig", "mountPath": _KUBECONFIG},
            {"name": f"{NAME}-config", "mountPath": _CONFIG},
            *(
                {"name": name, "mountPath": path, **({"readOnly": True} if name.startswith("ssl") else {})}
                for name, _, path in _FROM_HOST
            ),
        ],
    }
    command = [f"/usr/local/bin/{NAME}", f"--config={_CONFIG}/config.yaml", "--v=2"]
    privileged = {"privileged": True}
    first = container(f"{NAME}-init", image, command=[*command, "--init-only"], securityContext=privileged, **settled)
    main = container(
        NAME,
        image,
        command=command,
        ports=[{"name": "metrics", "containerPort": _METRICS, "hostPort": _METRICS, "protocol": "TCP"}],
        readinessProbe={
            "httpGet": {"path": "/healthz", "port": _HEALTH, "scheme": "HTTP"},
            "initialDelaySeconds": 15,
            "timeoutSeconds": 15,
            "successThreshold": 1,
            "failureThreshold": 2,
        },
        securityContext={"capabilities": {"add": ["NET_ADMIN", "SYS_RESOURCE"]}},
        **settled,
    )
    return {
        "hostNetwork": True,
        "nodeSelector": {VERSION: nodes.version, POOL: nodes.pool},
        "priorityClassName": "system-node-critical",
        "securityContext": SECCOMP,
        "serviceAccountName": NAME,
        "tolerations": ON_ALL_NODES,
        "initContainers": [_cleanup(inputs, image), first],
        "containers": [main],
        "volumes": list(_volumes()),
    }


def _cleanup(inputs: Inputs, image: str) -> Object:
    mounts = (
        (_CLEANUP, "/script"),
        ("kernel-modules", "/lib/modules"),
        (f"{NAME}-dir", _STATE),
        (f"{NAME}-mode", f"{_STATE}/mode"),
        ("kubeconfig", _KUBECONFIG),
        (f"{NAME}-config", _CONFIG),
    )
    return {
        "name": "cleanup",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", f"/script/cleanup.sh {_STATE}/mode"],
        "env": [{"name": "KUBE_PROXY_MODE", "value": _mode(inputs)}],
        "resources": {},
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts],
    }


def _volumes() -> Iterator[Object]:
    yield {"name": "kubeconfig", "secret": {"secretName": NAME}}
    yield {"name": f"{NAME}-config", "configMap": {"name": f"{NAME}-config"}}
    yield from ({"name": name, "hostPath": {"path": path}} for name, path, _ in _FROM_HOST)
    yield {"name": _CLEANUP, "configMap": {"name": _CLEANUP, "defaultMode": 0o777}}
    for name, path, kind in (
        (f"{NAME}-dir", _STATE, "DirectoryOrCreate"),
        (f"{NAME}-mode", f"{_STATE}/mode", "FileOrCreate"),
    ):
        yield {"name": name, "hostPath": {"path": path, "type": kind}}


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
