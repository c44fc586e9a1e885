"""All credentials of a real Shoot are rotated while two clients work: what one of them has is good for as long as it says.

One client keeps its bundle and its certificate until the rotation is prepared, the other fetches them all the time. On
this computer a control plane has one process of each program, so for a moment there is none; no other failure counts.
"""

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from devcluster.api import Api
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import AUTHENTICATION_API, SHOOTS
from gardener.garden.rotations import AUTHORITIES, ENCRYPTION_KEY, SERVICE_ACCOUNT_KEY
from kit.meadow import NAME, NAMESPACE, TECHNICAL_ID, Meadow, garden_with_seed
from kube.errors import ApiError, Unreachable
from kube.objects import Object, labels, metadata
from kube.resources import API_SERVICES, CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICE_ACCOUNTS
from kube.runtime.kubeconfig import parse_kubeconfig
from kube.x509 import load_certificates

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-rotation")]

_PAUSE_SECONDS = 0.2
_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
_IN_TWO_STEPS = (AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY)

OF_NOTHING: Object = {
    "metadata": {"name": "v1.example.com"},
    "spec": {
        "group": "example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 1,
        "insecureSkipTLSVerify": True,
        "service": {"name": "nothing", "namespace": "default"},
    },
}
"""An API of a user that nothing serves."""


@pytest.fixture(scope="module")
def meadow(devcluster_run: RunClusters) -> Iterator[Meadow]:
    with garden_with_seed("rotation") as (garden, seed):
        found = Meadow(garden, seed)
        found.create()
        found.wait("Create")
        yield found


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
            if _NOT_TRUSTED in str(error):
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


def test_all_credentials_are_rotated_and_no_client_loses_its_access(meadow: Meadow) -> None:
    cluster, old, (_, _, old_token) = meadow.cluster(), fetched(meadow), accesses(meadow)
    kept = SECRETS.path(namespace="default")
    cluster.create(kept, {"metadata": {"name": "kept"}, "data": {"a": "Yg=="}})
    account: Object = {"metadata": {"name": "robot"}, "secrets": [{"name": "robot-old"}]}
    cluster.create(SERVICE_ACCOUNTS.path(namespace="default"), account)
    of_robot = {"type": "kubernetes.io/service-account-token", "data": {}}
    notes = {"annotations": {"kubernetes.io/service-account.name": "robot"}}
    cluster.create(kept, {"metadata": {"name": "robot-old", **notes}, **of_robot})
    cluster.create(API_SERVICES.path(), OF_NOTHING)
    before = {config: made(meadow, config) for config in ("ca", "etcd-client", "kube-apiserver-etcd-encryption-key")}
    trusting, current = [old], User("current", lambda: fetched(meadow))
    slow = User("slow", lambda: trusting[0])

    with at_work(slow, current):
        prepared = meadow.rotate("start", "Prepared", *_IN_TWO_STEPS)
        assert all(prepared[each]["lastInitiationFinishedTime"] for each in _IN_TWO_STEPS)
        assert authorities(meadow) == shown_authorities(meadow) == 2
        assert marks(meadow) == {"new-encryption-key-populated", "resources-labeled", "etcd-snapshotted"}
        assert {config: len(made(meadow, config)) for config in before} == {
            "ca": 2,
            "etcd-client": 1,
            "kube-apiserver-etcd-encryption-key": 2,
        }
        assert set(before["ca"]) < set(made(meadow, "ca"))
        cluster.get("/api/v1/namespaces")  # with the token of before
        assert metadata(meadow.cluster().get(f"{kept}/kept"))["labels"].keys() == {
            "credentials.gardener.cloud/key-name"
        }
        listed = meadow.cluster().get(SERVICE_ACCOUNTS.path(namespace="default", name="robot"))["secrets"]
        assert [each["name"].rpartition("-")[0] for each in listed] == ["robot-token", "robot"]
        meadow.cluster().create(kept, {"metadata": {"name": "robot-own", **notes}, **of_robot})
        own = [{"name": "robot-own"}, *reversed(listed)]
        meadow.cluster().patch(SERVICE_ACCOUNTS.path(namespace="default", name="robot"), {"secrets": own})
        trusting[0] = fetched(meadow)
        completed = meadow.rotate("complete", "Completed", *_IN_TWO_STEPS)

    assert (slow.failures, current.failures) == ([], [])
    assert min(slow.successes, current.successes) > 10
    assert completed["observability"]["lastCompletionTime"]
    assert authorities(meadow) == shown_authorities(meadow) == 1
    assert {config: len(made(meadow, config)) for config in before} == dict.fromkeys(before, 1)
    assert marks(meadow) == set()
    with pytest.raises(Unreachable, match=_NOT_TRUSTED):
        old.get("/api/v1/namespaces")
    url, ca, _ = accesses(meadow)
    assert Api(url=url, ca=ca, token=old_token).raw("GET", "/api/v1/namespaces")[0] == 401
    now = meadow.cluster()
    assert now.get(f"{kept}/kept")["data"] == {"a": "Yg=="}
    assert "labels" not in metadata(now.get(f"{kept}/kept"))
    left = now.get(SERVICE_ACCOUNTS.path(namespace="default", name="robot"))["secrets"]
    assert left == [{"name": "robot-own"}, listed[0]]
    assert now.raw("GET", f"{kept}/robot-old")[0] == 404
