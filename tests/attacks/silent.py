"""A server that takes connections and never answers, and webhooks that lead to it."""

import base64
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kube.objects import Object
from localprocesses.pki import serving_pair


@contextmanager
def silent() -> Iterator[int]:
    """The port of one."""
    kept = []
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:

        def take() -> None:
            while True:
                try:
                    kept.append(server.accept())
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]


def client_config(port: int) -> Object:
    """How an API server reaches it."""
    certificate = serving_pair(["127.0.0.1"]).certificate
    return {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(certificate).decode()}


def admission(name: str, port: int, resources: Sequence[str], *, label: str) -> Object:
    """A MutatingWebhookConfiguration for these resources of the core group, in namespaces with a label."""
    webhook = {
        "name": f"{name}.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {label: "true"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}],
        "clientConfig": client_config(port),
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**head, "metadata": {"name": name}, "webhooks": [webhook]}
