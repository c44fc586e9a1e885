"""Kubeconfig of one cluster and one user, as programs write it."""

import base64
from collections.abc import Mapping

import yaml

from kube.yaml import Dumper


def kubeconfig(name: str, *, server: str, ca_bundle: bytes, user: Mapping[str, str], server_name: str = "") -> bytes:
    """Kubeconfig as YAML; equal arguments give equal texts.

    Args:
        name: of cluster, user and context.
        server: its URL.
        ca_bundle: certificates of its CAs, PEM.
        user: credentials, in the format of a kubeconfig.
        server_name: in its certificate, if it is not the host of the URL.
    """
    cluster = {"certificate-authority-data": base64.b64encode(ca_bundle).decode(), "server": server}
    if server_name:
        cluster["tls-server-name"] = server_name
    config = {
        "apiVersion": "v1",
        "clusters": [{"cluster": cluster, "name": name}],
        "contexts": [{"context": {"cluster": name, "user": name}, "name": name}],
        "current-context": name,
        "kind": "Config",
        "preferences": {},
        "users": [{"name": name, "user": dict(user)}],
    }
    return yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1 << 20).encode()
