"""Kubeconfigs as text: one cluster, one user, one context."""

import base64

import yaml

from kube.objects import Object
from localprocesses.pki import KeyPair


def kubeconfig(*, name: str, url: str, ca: str, user: Object) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": _base64(ca.encode())}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def token_credentials(token: str) -> Object:
    return {"token": token}


def client_certificate(pair: KeyPair) -> Object:
    return {
        "client-certificate-data": _base64(pair.certificate),
        "client-key-data": _base64(pair.key),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
