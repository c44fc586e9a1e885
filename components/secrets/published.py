"""Secrets of a Shoot's control plane that are published in the garden for users: pure functions.

They are built from the Secrets of this pass, never from an earlier copy, and compared with the live ones in every pass:
a rotation is complete only when users get the new ones.
"""

import base64
from collections.abc import Mapping
from typing import Any

from components.secrets.configs import BUNDLE, CA_CERTIFICATE
from components.secrets.stored import OPAQUE, Stored
from gardener import keys
from gardener.api.garden import INTERNAL_SECRETS, SHOOTS
from kube.objects import Object, metadata, text
from kube.resources import CONFIG_MAPS, SECRETS, Resource

CA_CLUSTER, CA_CLIENT, SSH_KEYPAIR, MONITORING = "ca-cluster", "ca-client", "ssh-keypair", "monitoring"
"""Suffixes of names, and roles."""
OLD_SSH_KEYPAIR = f"{SSH_KEYPAIR}.old"


def certificate_authority(shoot: Mapping[str, Any], bundle: Stored) -> list[Object]:
    """CA bundle with which clients verify the API server."""
    data = bundle.data[BUNDLE]
    config_map = _object(CONFIG_MAPS, shoot, CA_CLUSTER, {"data": {CA_CERTIFICATE: data.decode()}})
    return [config_map, _secret(SECRETS, shoot, CA_CLUSTER, {CA_CERTIFICATE: data})]


def client_authority(shoot: Mapping[str, Any], authority: Stored) -> Object:
    """CA with which the garden signs certificates for users; users can't read it."""
    return _secret(INTERNAL_SECRETS, shoot, CA_CLIENT, authority.data)


def observer(shoot: Mapping[str, Any], user: Stored) -> Object:
    """Username and password for the observability endpoints."""
    return _secret(SECRETS, shoot, MONITORING, user.data)


def ssh_keypairs(shoot: Mapping[str, Any], current: Stored, old: Stored | None) -> list[Object]:
    former = [_secret(SECRETS, shoot, OLD_SSH_KEYPAIR, old.data, role=SSH_KEYPAIR)] if old else []
    return [_secret(SECRETS, shoot, SSH_KEYPAIR, current.data), *former]


def _secret(
    resource: Resource, shoot: Mapping[str, Any], suffix: str, data: Mapping[str, bytes], *, role: str = ""
) -> Object:
    encoded = {field: base64.b64encode(value).decode() for field, value in data.items()}
    return _object(resource, shoot, suffix, {"type": OPAQUE, "data": encoded}, role=role)


def _object(resource: Resource, shoot: Mapping[str, Any], suffix: str, content: Object, *, role: str = "") -> Object:
    meta = metadata(shoot)
    name = text(meta.get("name"))
    return {
        **resource.type_meta,
        "metadata": {
            "name": f"{name}.{suffix}",
            "namespace": text(meta.get("namespace")),
            "labels": {keys.ROLE: role or suffix},
            "ownerReferences": [
                {
                    **SHOOTS.type_meta,
                    "name": name,
                    "uid": text(meta.get("uid")),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        **content,
    }
