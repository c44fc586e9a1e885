"""Access of an extension to the garden: a kubeconfig without a token, and a Secret for the requested token."""

import base64
from dataclasses import dataclass

import orjson
import yaml

from gardener import keys
from gardener.garden.extensions import namespace_of_installation
from gardener.garden.seeds import namespace_of
from gardener.references import make_unique
from kube.objects import Object
from kube.resources import SECRETS

ACCESS_SECRET = "garden-access-extension"
DIRECTORY = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"
KUBECONFIG = "kubeconfig"
TOKEN = "token"
_KUBECONFIG_SECRET = "generic-garden-kubeconfig"
_CLUSTER = "garden"
_USER = "extension"


@dataclass(frozen=True, slots=True)
class Server:
    """API server of the garden, as extensions reach it.

    Attributes:
        authority: PEM; empty for the system's CAs.
    """

    address: str
    authority: bytes


def service_account(installation: str) -> str:
    return namespace_of_installation(installation)  # same name


def kubeconfig_secret(server: Server, *, namespace: str) -> Object:
    cluster: Object = {"server": server.address}
    if server.authority:
        cluster["certificate-authority-data"] = base64.b64encode(server.authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CLUSTER, "cluster": cluster}],
        "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": _USER}}],
        "current-context": _CLUSTER,
        "users": [{"name": _USER, "user": {"tokenFile": f"{DIRECTORY}/{TOKEN}"}}],
    }
    content = yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 20, encoding="utf-8")
    return make_unique(
        {
            **SECRETS.type_meta,
            "metadata": {"name": _KUBECONFIG_SECRET, "namespace": namespace},
            "type": "Opaque",
            "data": {KUBECONFIG: base64.b64encode(content).decode()},
        }
    )


def access_secret(installation: str, *, registration: str, seed: str) -> Object:
    """Access Secret without the token, which the token requestor adds."""
    labels = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS: keys.CLASS_GARDEN}
    annotations = {
        keys.SERVICE_ACCOUNT_NAME: service_account(installation),
        keys.SERVICE_ACCOUNT_NAMESPACE: namespace_of(seed),
        keys.SERVICE_ACCOUNT_LABELS: orjson.dumps({keys.CONTROLLER_REGISTRATION_NAME: registration}).decode(),
    }
    return {
        **SECRETS.type_meta,
        "metadata": {
            "name": ACCESS_SECRET,
            "namespace": namespace_of_installation(installation),
            "labels": labels,
            "annotations": annotations,
        },
        "type": "Opaque",
    }
