"""A Shoot is a cluster: it comes, changes, sleeps, wakes and goes, with real programs on both sides.

A garden, a seed, a gardenlet with the rights of the manifests, and the local provider, as `devcluster up` starts them.
One Shoot goes through all of it, in the order of the tests.
"""

import base64
import json
import os
import re
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import dropwhile
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.gardenlet.shoot.main.controller import FLOWS
from conformance.shoot_operations import CREATE, DELETE, HIBERNATE, RECONCILE, WAKE, deviations, said_by
from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import BACKUP_ENTRIES, INTERNAL_SECRETS, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from gardener.garden.rotations import AUTHORITIES, ENCRYPTION_KEY, SERVICE_ACCOUNT_KEY
from gardener.keys import SHOOT_STATUS
from gardener.managed_resource.bundle import managed_resource
from kit.eventually import eventually
from kit.meadow import NAME, NAMESPACE, PATH, SECONDS, TECHNICAL_ID, Meadow, garden_with_seed
from kit.shoot_rotation import (
    NOT_TRUSTED,
    User,
    accesses,
    at_work,
    authorities,
    fetched,
    made,
    marks,
    shown_authorities,
)
from kube.errors import NotFound, Unreachable
from kube.objects import Object, metadata
from kube.paths import at
from kube.resources import (
    API_SERVICES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from kubectl.garden.__main__ import app
from localprocesses.versions import NEWEST
from localprovider.runner.places import Places

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-life")]

WRITES = ("create", "update", "patch", "delete", "deletecollection")
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


class Recorded(Meadow):
    """Attributes: states: of the Shoot in each operation, one after the other, by its name in the recording."""

    def __init__(self, garden: Cluster, seed: Cluster) -> None:
        super().__init__(garden, seed)
        shoot = self.create()
        self.states: dict[str, list[Object]] = {}
        self._seen = metadata(shoot)["resourceVersion"]

    def succeed(self, kind: str, name: str) -> Object:
        """The Shoot, once an operation of this type has succeeded. Args: name: in the recording."""
        shoot = self.wait(kind)
        self.remember(name)
        return shoot

    def remember(self, name: str) -> None:
        """All that the Shoot was since the last call, by a watch of the past."""
        query = f"watch=1&timeoutSeconds=1&resourceVersion={self._seen}&fieldSelector=metadata.name%3D{NAME}"
        _, answer = self.garden.api.raw("GET", f"{SHOOTS.path(namespace=NAMESPACE)}?{query}")
        self.states[name] = [json.loads(line)["object"] for line in answer.splitlines()]
        self._seen = metadata(self.states[name][-1])["resourceVersion"]

    def diff(self) -> tuple[int, str]:
        """Exit code, and what `kubectl gardener diff` shows."""
        port = json.loads((self.seed.state / "gardenlet.json").read_text())["server"]["metrics"]["port"]
        arguments = ["diff", NAME, "-n", NAMESPACE, "--gardenlet", f"http://127.0.0.1:{port}"]
        environment = {"KUBECONFIG": str(self.garden.kubeconfig), "NO_COLOR": "1"}
        result = CliRunner().invoke(app, arguments, env=environment)
        assert result.exit_code < 2, result.output
        return result.exit_code, result.stdout

    def named(self, resource: Resource, prefix: str) -> list[str]:
        """Names of objects of the control plane."""
        found = self.seed.api.get(resource.path(namespace=TECHNICAL_ID))["items"]
        return [name for each in found if (name := metadata(each)["name"]).startswith(prefix)]

    def versions(self) -> dict[str, str]:
        """Of objects of the control plane that extensions may mutate, and that no controller writes."""
        kinds = (DEPLOYMENTS, SERVICES, VERTICAL_POD_AUTOSCALERS)
        found = [each for kind in kinds for each in self.seed.api.get(kind.path(namespace=TECHNICAL_ID))["items"]]
        return {metadata(each)["uid"]: metadata(each)["resourceVersion"] for each in found}

    def secret_values(self) -> set[str]:
        """Lines and words of all Secrets of the control plane that could only have been taken from there."""
        found = set[str]()
        for each in self.seed.api.get(SECRETS.path(namespace=TECHNICAL_ID))["items"]:
            for field, value in (each.get("data") or {}).items():
                if not field.endswith((".br", ".crt")):
                    text = base64.b64decode(value).decode(errors="replace")
                    found |= {value, *(word for word in re.split(r"[\s,\"]+", text) if len(word) > 40)}
        return found - {""}

    def stored(self, key: str) -> bytes:
        """What the Shoot's etcd has, as its API server wrote it."""
        data = dict[str, bytes]()
        for name in ("etcd-client", "ca-etcd-bundle"):
            path = f"{SECRETS.path(namespace=TECHNICAL_ID)}?labelSelector=name%3D{name}"
            (secret,) = self.seed.api.get(path)["items"]
            data |= {field: base64.b64decode(value) for field, value in secret["data"].items()}
        context = ssl.create_default_context(cadata=data["bundle.crt"].decode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(data["tls.crt"] + data["tls.key"])
            file.flush()
            context.load_cert_chain(file.name)
        port = Places(self.seed.state / "provider" / "shoots").port(TECHNICAL_ID, "etcd-main-client")
        requested = json.dumps({"key": base64.b64encode(key.encode()).decode()}).encode()
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/v3/kv/range", requested, context=context) as answer:
            (found,) = json.loads(answer.read())["kvs"]
        return base64.b64decode(found["value"])


@pytest.fixture(scope="module")
def meadow(devcluster_run: RunClusters) -> Iterator[Recorded]:
    with garden_with_seed("life") as (garden, seed):
        yield Recorded(garden, seed)


def test_it_comes_up(meadow: Recorded) -> None:
    shoot = meadow.succeed("Create", CREATE)
    status = shoot["status"]
    assert (status["technicalID"], status["uid"]) == (TECHNICAL_ID, shoot["metadata"]["uid"])
    assert {each["name"] for each in status["advertisedAddresses"]} == {
        "external",
        "internal",
        "service-account-issuer",
    }
    cluster = meadow.cluster()
    assert cluster.get("/version")["gitVersion"] == f"v{NEWEST}"
    identity = cluster.get(CONFIG_MAPS.path(namespace="kube-system", name="cluster-identity"))
    assert identity["data"]["cluster-identity"] == status["clusterIdentity"]
    # A controller manager runs.
    eventually(
        lambda: cluster.get(SERVICE_ACCOUNTS.path(namespace="default", name="default")),
        "a ServiceAccount",
        passing=(NotFound,),
    )
    assert meadow.garden.api.get(INTERNAL_SECRETS.path(namespace=NAMESPACE, name=f"{NAME}.ca-client"))
    assert meadow.garden.api.get(CONFIG_MAPS.path(namespace=NAMESPACE, name=f"{NAME}.ca-cluster"))["data"]["ca.crt"]


def test_a_reconciliation_that_changes_nothing_keeps_all_keys_and_replicas(meadow: Recorded) -> None:
    keys, replicas, processes = meadow.secrets(), meadow.replicas(), sorted(meadow.processes())
    meadow.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    meadow.succeed("Reconcile", RECONCILE)
    assert (meadow.secrets(), meadow.replicas(), sorted(meadow.processes())) == (keys, replicas, processes)


def test_a_reconciliation_that_changes_nothing_writes_its_status_and_queries_etcds(meadow: Recorded) -> None:
    """The Cluster object shows the status of the Shoot, when it begins and when it ends. Its health stays as it is.

    Objects that extensions may mutate are sent once, for admission; the API server stores nothing.
    """
    before = eventually(partial(healthy, meadow), "the Shoot to be healthy", seconds=SECONDS, state=meadow.explain)
    versions = meadow.versions()
    with closing(meadow.garden.audit()) as in_garden, closing(meadow.seed.audit()) as in_seed:
        marks = in_garden.mark(), in_seed.mark()
        meadow.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
        meadow.succeed("Reconcile", "again")
        garden = in_garden.count(since=marks[0], user_agent="gardenlet/", namespace=NAMESPACE, verbs=WRITES)
        seed = in_seed.count(since=marks[1], user_agent="gardenlet/", verbs=WRITES)
        calls = in_garden.calls(since=marks[0], namespace=NAMESPACE, verbs=WRITES)
    assert garden.keys() <= {("patch", "shoots/status"), ("patch", "events"), ("create", "events")}
    sent = {"deployments": 3, "horizontalpodautoscalers": 1, "services": 3, "verticalpodautoscalers": 5}
    assert seed == {
        ("patch", "clusters"): 2,
        ("update", "etcds"): 2,
        **{("update", each): n for each, n in sent.items()},
    }
    assert meadow.versions() == versions
    assert {each.user_agent for each in calls if each.resource == "shoots"} == {"devcluster"}
    after = meadow.shoot()
    assert [after["status"][each] for each in _CHECKED] == [before["status"][each] for each in _CHECKED]


def healthy(meadow: Meadow) -> Object | None:
    shoot = meadow.shoot()
    return shoot if metadata(shoot)["labels"].get(SHOOT_STATUS) == "healthy" else None


_CHECKED = ("conditions", "constraints")


@contextmanager
def confined(meadow: Recorded) -> Iterator[None]:
    """Within it, changes of the Shoot wait for its maintenance window."""
    meadow.change({"spec": {"maintenance": {"confineSpecUpdateRollout": True}}})
    try:
        yield
    finally:
        meadow.change({"spec": {"maintenance": {"confineSpecUpdateRollout": False}}})
        meadow.succeed("Reconcile", "what waited")


def test_a_preview_reports_what_the_next_reconciliation_changes_and_changes_nothing(meadow: Recorded) -> None:
    assert meadow.diff() == (0, "")
    keys, replicas = meadow.secrets(), meadow.replicas()
    controller_manager = DEPLOYMENTS.path(namespace=TECHNICAL_ID, name="kube-controller-manager")
    identity = MANAGED_RESOURCES.path(namespace=TECHNICAL_ID, name="shoot-core-cluster-identity")
    (encryption,) = meadow.named(SECRETS, "kube-apiserver-etcd-encryption-configuration-")
    (audit_policy,) = meadow.named(CONFIG_MAPS, "audit-policy-config-")
    (certificate,) = meadow.named(SECRETS, "etcd-server-main-")
    hand = managed_resource("hand", TECHNICAL_ID, [{**CONFIG_MAPS.type_meta, "metadata": {"name": "by-hand"}}])[0]
    with confined(meadow), closing(meadow.seed.audit()) as requested:
        meadow.change({"spec": {"kubernetes": {"kubeAPIServer": {"eventTTL": "2h"}}}})
        meadow.seed.api.patch(controller_manager, {"spec": {"minReadySeconds": 7}})
        meadow.seed.api.delete(CONFIG_MAPS.path(namespace=TECHNICAL_ID, name=audit_policy))
        meadow.seed.api.delete(SECRETS.path(namespace=TECHNICAL_ID, name=certificate))
        meadow.seed.api.create(SECRETS.path(namespace=TECHNICAL_ID), hand)
        meadow.seed.api.patch(identity, {"spec": {"secretRefs": [{"name": metadata(hand)["name"]}]}})
        since = requested.mark()
        code, shown = meadow.diff()
        calls = requested.calls(since=since, user_agent="gardenlet", namespace=TECHNICAL_ID)
        left = {name: expected_uid for name, expected_uid in keys.items() if name != certificate}
        assert (meadow.secrets(), meadow.replicas()) == (left, replicas)
        assert [each for each in meadow.secret_values() if each in shown] == []
    assert code == 1
    assert "-        - --event-ttl=1h0m0s\n" in shown
    assert "+        - --event-ttl=2h\n" in shown
    assert f"seed: Deployment {TECHNICAL_ID}/kube-controller-manager\n" in shown
    assert "-  minReadySeconds: 7\n" in shown
    assert f"+++ ConfigMap/{audit_policy}\n" in shown
    assert "+++ Secret/etcd-server-main-new\n" in shown
    assert "+  tls.key: (new)\n" in shown
    within = f"(ManagedResource {TECHNICAL_ID}/shoot-core-cluster-identity)"
    assert f"shoot: ConfigMap by-hand {within}\n--- ConfigMap/by-hand\n+++ /dev/null\n" in shown
    assert f"shoot: ConfigMap kube-system/cluster-identity {within}\n" in shown
    assert encryption not in shown
    writes = [call for call in calls if call.verb not in {"get", "list"}]
    assert {"dryRun=All" in call.uri for call in writes} == {True}
    assert meadow.diff() == (0, "")


def test_it_sleeps_and_wakes_with_its_data(meadow: Recorded) -> None:
    keys = meadow.secrets()
    kept: Object = {**CONFIG_MAPS.type_meta, "metadata": {"name": "kept"}, "data": {"a": "b"}}
    meadow.cluster().create(CONFIG_MAPS.path(namespace="default"), kept)
    meadow.change({"spec": {"hibernation": {"enabled": True}}})
    assert meadow.succeed("Reconcile", HIBERNATE)["status"]["hibernated"] is True
    assert set(meadow.replicas().values()) == {0}
    meadow.wait_until_nothing_runs()
    meadow.change({"spec": {"hibernation": {"enabled": False}}})
    assert meadow.succeed("Reconcile", WAKE)["status"]["hibernated"] is False
    assert meadow.cluster().get(CONFIG_MAPS.path(namespace="default", name="kept"))["data"] == {"a": "b"}
    assert meadow.secrets() == keys


def test_what_is_to_be_encrypted_is_rewritten(meadow: Recorded) -> None:
    """And again when it is not to be encrypted any more."""
    plain: Object = {**CONFIG_MAPS.type_meta, "metadata": {"name": "plain"}, "data": {"a": "b"}}
    meadow.cluster().create(CONFIG_MAPS.path(namespace="default"), plain)
    for resources, prefix in (["configmaps"], b"k8s:enc:aescbc:v1:key"), ([], b"k8s\x00"):
        meadow.change({"spec": {"kubernetes": {"kubeAPIServer": {"encryptionConfig": {"resources": resources}}}}})
        shoot = meadow.succeed("Reconcile", f"encrypt {resources}")
        assert shoot["status"].get("encryptedResources", []) == resources
        assert meadow.stored("/registry/configmaps/default/plain").startswith(prefix)
        found = meadow.cluster().get(CONFIG_MAPS.path(namespace="default", name="plain"))
        assert (found["data"], found["metadata"].get("labels")) == ({"a": "b"}, None)
        assert meadow.diff() == (0, "")  # the next reconciliation does not roll out its API server


def test_all_credentials_are_rotated_and_no_client_loses_its_access(meadow: Recorded) -> None:
    """What one of them has is good for as long as it states.

    It keeps its bundle and its certificate until the rotation is prepared; the other one fetches them all the time.
    """
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
        meadow.remember("prepared")
        trusting[0] = fetched(meadow)
        completed = meadow.rotate("complete", "Completed", *_IN_TWO_STEPS)

    assert (slow.failures, current.failures) == ([], [])
    assert min(slow.successes, current.successes) > 10
    assert completed["observability"]["lastCompletionTime"]
    assert authorities(meadow) == shown_authorities(meadow) == 1
    assert {config: len(made(meadow, config)) for config in before} == dict.fromkeys(before, 1)
    assert marks(meadow) == set()
    with pytest.raises(Unreachable, match=NOT_TRUSTED):
        old.get("/api/v1/namespaces")
    url, ca, _ = accesses(meadow)
    assert Api(url=url, ca=ca, token=old_token).raw("GET", "/api/v1/namespaces")[0] == 401
    now = meadow.cluster()
    assert now.get(f"{kept}/kept")["data"] == {"a": "Yg=="}
    assert "labels" not in metadata(now.get(f"{kept}/kept"))
    left = now.get(SERVICE_ACCOUNTS.path(namespace="default", name="robot"))["secrets"]
    assert left == [{"name": "robot-own"}, listed[0]]
    assert now.raw("GET", f"{kept}/robot-old")[0] == 404
    now.delete(f"{API_SERVICES.path()}/{metadata(OF_NOTHING)['name']}")
    meadow.remember("completed")


def test_its_api_server_comes_back(meadow: Recorded) -> None:
    def pids() -> list[int]:
        place = str(meadow.seed.state / "provider" / "shoots")
        lines = {int(each.parent.name): each for each in Path("/proc").glob("[0-9]*/cmdline")}
        return [
            pid
            for pid, line in lines.items()
            if "kube-apiserver" in (text := _read(line)).split("\0")[0] and place in text
        ]

    for pid in pids():
        os.kill(pid, 9)
    eventually(
        lambda: pids() and meadow.cluster().raw("GET", "/readyz")[0] == 200,
        "the API server",
        seconds=SECONDS,
        passing=(Unreachable,),
    )


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_it_goes_when_what_holds_it_is_gone(meadow: Recorded) -> None:
    cluster = meadow.cluster()
    held: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "held", "finalizers": ["example.com/held"]},
        "spec": {"ports": [{"port": 80}]},
    }
    cluster.create("/api/v1/namespaces/default/services", held)
    meadow.change({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
    meadow.garden.api.delete(PATH)
    path = "/api/v1/namespaces/default/services/held"
    eventually(
        lambda: "deletionTimestamp" in cluster.get(path)["metadata"], "the Service to be deleted", seconds=SECONDS
    )
    assert at(meadow.shoot(), "status", "lastOperation", "type") == "Delete"
    cluster.patch(path, {"metadata": {"finalizers": None}})

    def gone() -> bool:
        return meadow.garden.api.raw("GET", PATH)[0] == 404

    eventually(gone, "the Shoot to go", seconds=SECONDS, state=meadow.explain)
    meadow.remember(DELETE)
    assert meadow.seed.api.raw("GET", NAMESPACES.path(name=TECHNICAL_ID))[0] == 404
    meadow.wait_until_nothing_runs()
    eventually(
        lambda: meadow.garden.api.get(BACKUP_ENTRIES.path(namespace=NAMESPACE))["items"] == [],
        "the backup entry to go with its owner",
        seconds=SECONDS,
    )


@pytest.mark.parametrize("name", [CREATE, RECONCILE, HIBERNATE, WAKE, DELETE])
def test_its_status_went_as_with_the_original(meadow: Recorded, name: str) -> None:
    flow = FLOWS["Delete" if name == DELETE else "Reconcile"]
    tasks = {each.name for each in flow.tasks.values()}
    reported = [*dropwhile(lambda each: each.state != "Processing", said_by(meadow.states[name]))]
    assert [*deviations(reported, name, tasks=tasks)] == []
