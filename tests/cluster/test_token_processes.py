"""The agent as a process: what it says holds no credential, and it can live on a token that it renews itself."""

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_process import AgentProcess, configuration
from token_world import kubeconfig

from agent.token_requestor import keys
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kube.errors import NotFound

PATIENCE = 60.0
API_SERVER = "https://kubernetes.default.svc"
HUSH = "hush-b2f1"
"""In everything that nobody is to see."""


class Rig:
    """Secrets in a namespace, as an administrator writes and reads them."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.api = cluster.api
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}"

    def ask(self, name: str, data: dict[str, str] | None = None, *, account: str = "sa", **annotated: str) -> None:
        annotations = {keys.NAME: account, keys.NAMESPACE: self.namespace}
        annotations |= {getattr(keys, constant): value for constant, value in annotated.items()}
        body: dict[str, Any] = {
            "metadata": {
                "name": name,
                "labels": {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR},
                "annotations": annotations,
            },
            "stringData": data or {},
        }
        if name == "immutable":
            body["immutable"] = True
        self.api.create(f"{self.path}/secrets", body)

    def data(self, name: str) -> dict[str, str]:
        """Nothing if there is no such Secret yet."""
        try:
            found = self.api.get(f"{self.path}/secrets/{name}").get("data") or {}
        except NotFound:
            return {}
        return {key: base64.b64decode(text).decode() for key, text in found.items()}

    def renew(self, name: str) -> None:
        body = {"metadata": {"annotations": {keys.RENEW_TIMESTAMP: "2020-01-01T00:00:00Z"}}}
        self.api.patch(f"{self.path}/secrets/{name}", body)

    def events(self) -> str:
        return json.dumps(self.api.get(f"{self.path}/events"))


@pytest.fixture
def rig(cluster: Cluster, namespace: str) -> Rig:
    return Rig(cluster, namespace)


def until(holds: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


def config(namespace: str, **settings: Any) -> dict[str, Any]:
    return configuration(
        namespace,
        leaderElection={"leaderElect": False},
        logFormat="json",
        logLevel="debug",
        controllers={"tokenRequestor": {"enabled": True, **settings}},
    )


# --- secrecy


def test_no_token_key_or_kubeconfig_is_ever_told(cluster: Cluster, namespace: str, rig: Rig) -> None:
    secret_user = {"username": HUSH, "password": HUSH, "client-key-data": base64.b64encode(HUSH.encode()).decode()}
    full = yaml.safe_load(kubeconfig(token=HUSH))
    full["users"][0]["user"] |= secret_user
    broken = {
        "not-yaml": f"users: *{HUSH}",
        "no-mapping": HUSH,
        "bad-base64": json.dumps({"users": [{"name": "u", "user": {"client-key-data": f"{HUSH}!"}}]}),
        "bad-type": json.dumps({"users": {HUSH: HUSH}}),
        "no-user": kubeconfig(user=HUSH),
    }
    for name, text in broken.items():
        rig.ask(name, {"kubeconfig": text})
    rig.ask("immutable", {"token": HUSH})
    rig.ask("rejected", {"token": HUSH}, RENEW_TIMESTAMP="2099-01-01T00:00:00Z")
    rig.ask("full", {"kubeconfig": yaml.safe_dump(full)}, INJECT_CA_BUNDLE="true")
    rig.ask("lost", {"kubeconfig": yaml.safe_dump(full)}, TARGET_NAME="out", TARGET_NAMESPACE=namespace)
    rig.ask("nowhere", {"token": HUSH}, TARGET_NAME="out", TARGET_NAMESPACE=f"{namespace}-none")
    with AgentProcess(config(namespace), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        until(lambda: all(name in rig.events() for name in (*broken, "immutable", "lost", "nowhere")), "events")
        until(lambda: rig.data("rejected")["token"] != HUSH, "a new token")
        until(
            lambda: HUSH not in str(yaml.safe_load(rig.data("full")["kubeconfig"])["users"][0]["user"]["token"]), "it"
        )
        until(lambda: rig.data("out").get("token"), "a token in another Secret")
        token = rig.data("rejected")["token"]
        rig.renew("rejected")
        until(lambda: rig.data("rejected")["token"] != token, "another token")
        told = {"log": agent.log, "output": agent.output, "events": rig.events(), "metrics": str(agent.metrics())}
        found = [rig.data(name) for name in ("full", "rejected", "out")]
    hidden = _credentials([*found, {"token": token}, {"token": HUSH, "kubeconfig": yaml.safe_dump(full)}])
    assert len(hidden) > 10
    assert "Requesting a token" in told["log"]
    assert {where: secret for where, text in told.items() for secret in hidden if secret in text} == {}


def _credentials(contents: list[dict[str, str]]) -> set[str]:
    """Whatever must not be told, in all forms in which it may be written."""
    texts = {content[key] for content in contents for key in ("token", "kubeconfig") if key in content}
    for content in contents:
        if "kubeconfig" in content:
            user = yaml.safe_load(content["kubeconfig"])["users"][0]["user"]
            texts |= {value for value in user.values() if isinstance(value, str)}
    parts = {part for text in texts if text.startswith("eyJ") for part in text.split(".")[1:]}
    encoded = {base64.b64encode(text.encode()).decode() for text in texts}
    return texts | parts | encoded


# --- its own token


@pytest.fixture
def administrator(rig: Rig, namespace: str) -> Iterator[str]:
    """The name of a ServiceAccount that may do everything, as an agent does."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    name = f"agent-{uuid.uuid4().hex[:12]}"
    rig.api.create(f"{rig.path}/serviceaccounts", {"metadata": {"name": "agent"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "agent", "namespace": namespace}
    rig.api.create(path, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    yield "agent"
    rig.api.delete(f"{path}/{name}")


def test_an_agent_lives_on_a_token_that_it_renews_itself(
    cluster: Cluster, rig: Rig, namespace: str, administrator: str, audit: Audit, tmp_path: Path
) -> None:
    """What it starts with ends soon; the test does what a kubelet does, and keeps a file like the Secret."""
    file = tmp_path / "token"
    bound = rig.api.create(f"{rig.path}/secrets", {"metadata": {"name": "bootstrap"}})["metadata"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "bootstrap", "uid": bound["uid"]}
    request = {"spec": {"audiences": [API_SERVER], "expirationSeconds": 600, "boundObjectRef": reference}}
    first = rig.api.create(f"{rig.path}/serviceaccounts/{administrator}/token", request)["status"]["token"]
    file.write_text(first)
    rig.ask("own", account=administrator, EXPIRATION="10m")
    connection = _kubeconfig_with_token_file(cluster, file, tmp_path / "kubeconfig")
    with AgentProcess(config(namespace, audiences=[]), kubeconfig=connection) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        second = until(lambda: rig.data("own").get("token"), "a token of its own")
        _replace(file, second)
        rig.api.delete(f"{rig.path}/secrets/bootstrap")  # and with it the token that it started with
        until(lambda: not _is_accepted(rig, first), "the first token to end")

        rig.ask("work", account="worker")
        until(lambda: rig.data("work").get("token"), "work to be done")
        assert _credential(audit, namespace, administrator) == _id(second)

        rig.renew("own")
        third = until(lambda: _other(rig.data("own").get("token", ""), second), "its token to be renewed")
        _replace(file, third)
        assert _is_accepted(rig, third)
        assert agent.process.poll() is None


def _replace(file: Path, text: str) -> None:
    """At once, so that nobody finds a part of it."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def _kubeconfig_with_token_file(cluster: Cluster, file: Path, path: Path) -> Path:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for entry in document["users"]:
        entry["user"] = {"tokenFile": str(file)}
    path.write_text(yaml.safe_dump(document))
    return path


def _is_accepted(rig: Rig, token: str) -> bool:
    review = rig.api.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    return bool(review["status"].get("authenticated"))


def _other(token: str, than: str) -> str:
    return token if token != than else ""


def _id(token: str) -> str:
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def _credential(audit: Audit, namespace: str, account: str) -> str:
    """With which token the agent wrote last."""
    calls: list[Call] = [
        call
        for call in audit.calls(namespace=namespace, verbs=("create", "patch"))
        if call.user == f"system:serviceaccount:{namespace}:{account}" and call.status < 300
    ]
    extra = calls[-1].event["user"].get("extra") or {}
    return str(extra["authentication.kubernetes.io/credential-id"][0])


# --- audiences


@pytest.mark.parametrize(("audiences", "is_told"), [(["nobody"], True), (["gardener"], False), ([], False)])
def test_it_is_told_that_the_api_server_does_not_know_an_audience(
    audiences: list[str], is_told: bool, cluster: Cluster, namespace: str, rig: Rig
) -> None:
    told = "The API server of the target cluster does not accept tokens with the configured audiences"
    with AgentProcess(config(namespace, audiences=audiences), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        rig.ask("first")
        until(lambda: rig.data("first").get("token"), "a token")
        if is_told:
            until(lambda: told in agent.log, "the warning")
        rig.ask("second")
        until(lambda: rig.data("second").get("token"), "a token")
    assert agent.log.count(told) == is_told
