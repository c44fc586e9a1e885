"""Configurations of the programs of a seed that are no Deployments in it: they use it through a kubeconfig."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from components.resource_manager.configuration import of_seed
from config import local_provider
from kube.objects import Object, mapping
from kube.resources import ENDPOINTS
from localprocesses.local import HOST, PATIENT

RESOURCE_MANAGER = "gardener-resource-manager"
LOCAL_PROVIDER = "local-provider"
HEALTH, METRICS = "healthProbes", "metrics"
"""Servers of a program."""
API_SERVER: Object = {
    **ENDPOINTS.type_meta,
    "metadata": {"name": "kubernetes", "namespace": "default"},
    "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}],
}
"""Address for pods, none of which runs; 127.0.0.1 is refused. Network policies derive from it."""


def of_resource_manager() -> Object:
    """Return the configuration that the gardenlet would write, but without webhooks, which no API server calls here."""
    config = of_seed(name=RESOURCE_MANAGER)
    controllers = {**config["controllers"], "tokenInvalidator": {"enabled": False}}
    own = {name: value for name, value in config.items() if name not in {"server", "webhooks"}}
    return {**own, "controllers": controllers, "leaderElection": {**config["leaderElection"], **PATIENT}}


def of_local_provider(state: Path, *, buckets: Path | None = None, is_shoot: bool) -> Object:
    """Return the configuration; `state` is its directory, `buckets` is one shared with others."""
    component = local_provider.COMPONENT
    return {
        "apiVersion": component.api_version,
        "kind": component.kind,
        "stateDir": str(state),
        **({"bucketsDir": str(buckets)} if buckets else {}),
        "leaderElection": {"leaderElect": False},
        "seedIsShoot": is_shoot,
    }


def served_at(config: Object, ports: Mapping[str, int]) -> Object:
    """Add servers at these ports to a configuration."""
    return {**config, "server": {name: {"bindAddress": HOST, "port": port} for name, port in ports.items()}}


def with_token_file(kubeconfig: bytes) -> tuple[bytes, bytes]:
    """Return the kubeconfig with its token in a file `token` next to it, where it can be renewed; and the token."""
    whole = mapping(yaml.safe_load(kubeconfig))
    (user,) = whole["users"]
    token = str(user["user"]["token"])
    users = [{**user, "user": {"tokenFile": "token"}}]
    return yaml.safe_dump({**whole, "users": users}).encode(), token.encode()
