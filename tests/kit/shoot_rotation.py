"""Clients of a Shoot that work while its credentials are rotated, and what there is of these.

On this computer a control plane has one process of each program, so for a moment there is none; no other failure counts.
"""

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from devcluster.api import Api
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import AUTHENTICATION_API, SHOOTS
from kit.meadow import NAME, NAMESPACE, TECHNICAL_ID, Meadow
from kube.errors import ApiError, Unreachable
from kube.objects import Object, labels, metadata
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, SECRETS
from kube.runtime.kubeconfig import parse_kubeconfig
from kube.x509 import load_certificates

_PAUSE_SECONDS = 0.2
NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"


def accesses(meadow: Meadow) -> tuple[str, str, str]:
    found = meadow.access()
    assert found is not None
    return found


def fetched(meadow: Meadow) -> Api:
    """A client with what its user gets in the garden now."""
    path = f"/apis/{AUTHENTICATION_API}/namespaces/{NAMESPACE}/{SHOOTS.plural}/{NAME}/adminkubeconfig"
    body = {"apiVersion": AUTHENTICATION_API, "kind": "AdminKubeconfigRequest", "spec": {"expirationSeconds": 3600}}
    answer = meadow.garden.api.create(path, body)
    config = parse_kubeconfig(base64.b64decode(answer["status"]["kubeconfig"]), origin="the garden's")
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    parts = [base64.b64decode(user[f"client-{each}-data"]) for each in ("certificate", "key")]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Api(url=accesses(meadow)[0], ca=ca, certificate=b"\n".join(parts))


@dataclass
class User:
    """Writes, again and again. Attributes: failures: that no restart of a process explains."""

    name: str
    api: Callable[[], Api]
    failures: list[str] = field(default_factory=list)
    successes: int = 0

    def write(self) -> None:
        try:
            api = self.api()
            path = CONFIG_MAPS.path(namespace="default")
            body: Object = {"metadata": {"generateName": f"{self.name}-"}, "data": {"a": "b"}}
            made = api.create(path, body)
            api.delete(f"{path}/{metadata(made)['name']}")
        except Unreachable as error:
            if NOT_TRUSTED in str(error):
                self.failures.append(str(error))
        except ApiError as error:
            if error.status < 500 and error.status != 429:
                self.failures.append(f"{error.status}: {error}")
        else:
            self.successes += 1


@contextmanager
def at_work(*users: User) -> Iterator[None]:
    over = threading.Event()

    def work(user: User) -> None:
        while not over.wait(_PAUSE_SECONDS):
            user.write()

    threads = [threading.Thread(target=work, args=(user,), daemon=True) for user in users]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


def authorities(meadow: Meadow) -> int:
    """How many users trust."""
    found = meadow.garden.api.get(CONFIG_MAPS.path(namespace=NAMESPACE, name=f"{NAME}.ca-cluster"))
    return len(load_certificates(found["data"]["ca.crt"].encode()))


def shown_authorities(meadow: Meadow) -> int:
    """How many extensions have what they run trust."""
    cluster = meadow.seed.api.get(CLUSTERS.path(name=TECHNICAL_ID))
    name = metadata(cluster)["annotations"]["generic-token-kubeconfig.secret.gardener.cloud/name"]
    secret = meadow.seed.api.get(SECRETS.path(namespace=TECHNICAL_ID, name=name))
    config = parse_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]), origin="the Secret's")
    return len(load_certificates(base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])))


def made(meadow: Meadow, config: str) -> list[str]:
    """Names of Secrets of the control plane."""
    path = f"{SECRETS.path(namespace=TECHNICAL_ID)}?labelSelector=managed-by%3Dsecrets-manager"
    return [metadata(each)["name"] for each in meadow.seed.api.get(path)["items"] if labels(each)["name"] == config]


def marks(meadow: Meadow) -> set[str]:
    live = meadow.seed.api.get(DEPLOYMENTS.path(namespace=TECHNICAL_ID, name="kube-apiserver"))
    prefix = "credentials.gardener.cloud/"
    return {name.removeprefix(prefix) for name in metadata(live)["annotations"] if name.startswith(prefix)}
