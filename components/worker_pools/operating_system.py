"""OperatingSystemConfigs: two for each pool.

provision  initial content of a machine, which only fetches the node agent
reconcile  content maintained by the node agent: the kubelet, its configuration, settings of the system
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from components.parts import made
from components.worker_pools import kubelet
from components.worker_pools.machine_files import (
    ALL_RUN,
    GROUP_READS,
    OWNER_READS,
    Part,
    authorities,
    containers,
    file,
    from_image,
    kernel,
    logins,
    logs,
    text,
    unit,
)
from components.worker_pools.pools import NODE_AGENT, POOL, Pool
from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from kube.objects import Object, string_map
from kube.yaml import Dumper

PROVISION, RECONCILE = "provision", "reconcile"
_SUFFIXES = {PROVISION: "init", RECONCILE: "original"}
_DIRECTORY = f"/var/lib/{NODE_AGENT}"
_CONFIG, _INIT = f"{_DIRECTORY}/config.yaml", f"{_DIRECTORY}/init.sh"
_BINARY = f"/opt/bin/{NODE_AGENT}"
_TOKEN = "<<BOOTSTRAP_TOKEN>>"
_HEALTH, _METRICS = 2751, 2752
_WITH_DRIVER = (1, 31)
"""First version in which a node agent configures the cgroup driver of the container runtime."""


@dataclass(frozen=True, slots=True)
class Images:
    """Attributes: pause: image of the sandbox container. agent, kubelet: images with the programs of these names."""

    pause: str
    agent: str
    kubelet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    type: of the extension for its machine image.
    server: URL of the API server.
    ca_bundle: verifies the API server.
    trusted: certificates (PEM) that everything on the machine trusts.
    kubelet_ca: verifies client certificates of requests to kubelets.
    dns: address of the cluster's DNS.
    public_keys: of SSH, the newest first; empty disables SSH.
    """

    namespace: str
    pool: Pool
    type: str
    server: str
    ca_bundle: bytes
    trusted: bytes
    kubelet_ca: bytes
    dns: str
    images: Images
    public_keys: Sequence[bytes]


def name_of(pool: Pool, purpose: str) -> str:
    return f"{pool.key}-{pool.image_name}-{_SUFFIXES[purpose]}"


def objects(values: Values) -> list[Object]:
    """Both configs, the one for the start of a machine first."""
    return [_config(values, PROVISION), _config(values, RECONCILE)]


def _config(values: Values, purpose: str) -> Object:
    parts = list(_first(values) if purpose == PROVISION else _later(values))
    spec: Object = {
        "type": values.type,
        "purpose": purpose,
        "criConfig": _runtime(values, purpose),
        "units": [each for part in parts for each in part.units],
        "files": [each for part in parts for each in part.files],
    }
    if provider_config := values.pool.image.get("providerConfig"):
        spec["providerConfig"] = provider_config
    return made(
        OPERATING_SYSTEM_CONFIGS,
        name_of(values.pool, purpose),
        namespace=values.namespace,
        labels={POOL: values.pool.name, "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"},
        spec=spec,
    )


def _runtime(values: Values, purpose: str) -> Object:
    found: Object = {"name": values.pool.runtime}
    if purpose == RECONCILE:
        found["containerd"] = {"sandboxImage": values.images.pause}
        if values.pool.minor >= _WITH_DRIVER:
            found["cgroupDriver"] = "systemd"
    return found


# --- at the start


def _first(values: Values) -> Iterator[Part]:
    token = {"content": {"inline": {"encoding": "", "data": _TOKEN}, "transmitUnencoded": True}}
    fetched = unit("gardener-node-init.service", command="start", enable=True, paths=[_INIT])
    yield Part(
        [fetched],
        [
            {"path": f"{_DIRECTORY}/credentials/bootstrap-token", "permissions": GROUP_READS, **token},
            file(_INIT, text("gardener-node-init.sh", image=values.images.agent), ALL_RUN),
            file(_CONFIG, _agent_config(values, bootstraps=True), OWNER_READS),
        ],
    )
    (*ssh,) = logins(values.public_keys)
    yield from reversed(ssh)


# --- from then on


def _later(values: Values) -> Iterator[Part]:
    pool = values.pool
    yield authorities(values.trusted)
    yield containers()
    yield logs()
    yield kernel(string_map(pool.requested.get("sysctls")))
    yield Part(
        [
            unit(
                "kubelet.service",
                start=kubelet.command(pool),
                command="start",
                enable=True,
                paths=[kubelet.AUTHORITY, kubelet.CONFIG, kubelet.BINARY],
            )
        ],
        [
            file(kubelet.AUTHORITY, values.kubelet_ca),
            file(kubelet.CONFIG, _yaml(kubelet.configuration(pool, dns=values.dns))),
            from_image(kubelet.BINARY, values.images.kubelet),
        ],
    )
    ssh, *user = logins(values.public_keys)
    yield ssh
    yield Part(
        [unit(f"{NODE_AGENT}.service", enable=True, paths=[_CONFIG, _BINARY])],
        [
            file(_CONFIG, _agent_config(values, bootstraps=False), OWNER_READS),
            from_image(_BINARY, values.images.agent),
        ],
    )
    yield from user


def _agent_config(values: Values, *, bootstraps: bool) -> bytes:
    config: Object = {
        "apiVersion": "nodeagent.config.gardener.cloud/v1alpha1",
        "kind": "NodeAgentConfiguration",
        "apiServer": {"server": values.server, "caBundle": base64.b64encode(values.ca_bundle).decode()},
        "controllers": {
            "operatingSystemConfig": {"secretName": values.pool.key, "kubernetesVersion": values.pool.version},
            "token": {"syncConfigs": [{"secretName": NODE_AGENT, "path": f"{_DIRECTORY}/credentials/token"}]},
        },
        "logFormat": "json",
        "logLevel": "info",
        "server": {"healthProbes": {"port": _HEALTH}, "metrics": {"port": _METRICS}},
    }
    return _yaml(config | ({"bootstrap": {}} if bootstraps else {}))


def _yaml(content: Object) -> bytes:
    written: str = yaml.dump(content, Dumper=Dumper, sort_keys=True, width=1 << 20)
    return written.encode()
