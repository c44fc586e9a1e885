"""The agent as a process: what it reports holds no credential, and it can live on a token that it renews itself."""

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from gardener import keys
from kit.eventually import eventually
from kit.objects import account, decoded, obj, role_binding, secret
from kit.processes.agent import AgentProcess, configuration
from kit.tokens import kubeconfig
from kit.versions import minor_version
from kit.world import Place
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES

PATIENCE = 300.0
API_SERVER = "https://kubernetes.default.svc"
HUSH = "hush-b2f1"
"""In everything that has to stay secret."""


class TokenPlace(Place):
    """Secrets in a namespace, as an administrator writes and reads them."""

    def ask(self, name: str, data: dict[str, str] | None = None, *, account: str = "sa", **annotated: str) -> None:
        wanted = {keys.SERVICE_ACCOUNT_NAME: account, keys.SERVICE_ACCOUNT_NAMESPACE: self.namespace}
        wanted |= {getattr(keys, constant): value for constant, value in annotated.items()}
        marks = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
        self.create(secret(name, data, labels=marks, annotations=wanted, immutable=name == "immutable"))

    def data(self, name: str) -> dict[str, str]:
        """Nothing if there is no such Secret yet."""
        return decoded(self.find("Secret", name))

    def renew(self, name: str) -> None:
        past = {keys.TOKEN_RENEW_TIMESTAMP: "2020-01-01T00:00:00Z"}
        self.patch("Secret", name, {"metadata": {"annotations": past}})

    def events(self) -> str:
        return json.dumps(self.list("Event"))


@pytest.fixture
def rig(cluster: Cluster, namespace: str) -> TokenPlace:
    return TokenPlace(cluster, namespace)


def config(namespace: str, **settings: Any) -> dict[str, Any]:
    return configuration(
        namespace,
        leaderElection={"leaderElect": False},
        logFormat="json",
        logLevel="debug",
        controllers={"tokenRequestor": {"enabled": True, **settings}},
    )


# --- secrecy


def test_no_token_key_or_kubeconfig_is_ever_shown(cluster: Cluster, namespace: str, rig: TokenPlace) -> None:
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
    rig.ask("rejected", {"token": HUSH}, TOKEN_RENEW_TIMESTAMP="2099-01-01T00:00:00Z")
    rig.ask("full", {"kubeconfig": yaml.safe_dump(full)}, INJECT_CA_BUNDLE="true")
    rig.ask("lost", {"kubeconfig": yaml.safe_dump(full)}, TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=namespace)
    rig.ask("nowhere", {"token": HUSH}, TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=f"{namespace}-none")
    with AgentProcess(config(namespace), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        eventually(lambda: all(name in rig.events() for name in (*broken, "immutable", "lost", "nowhere")), "events")
        eventually(lambda: rig.data("rejected")["token"] != HUSH, "a new token")
        eventually(
            lambda: HUSH not in str(yaml.safe_load(rig.data("full")["kubeconfig"])["users"][0]["user"]["token"]), "it"
        )
        eventually(lambda: rig.data("out").get("token"), "a token in another Secret")
        token = rig.data("rejected")["token"]
        rig.renew("rejected")
        eventually(lambda: rig.data("rejected")["token"] != token, "another token")
        reported = {"log": agent.log, "output": agent.output, "events": rig.events(), "metrics": str(agent.metrics())}
        found = [rig.data(name) for name in ("full", "rejected", "out")]
    hidden = _credentials([*found, {"token": token}, {"token": HUSH, "kubeconfig": yaml.safe_dump(full)}])
    assert len(hidden) > 10
    assert "Requesting a token" in reported["log"]
    assert {where: secret for where, text in reported.items() for secret in hidden if secret in text} == {}


def _credentials(contents: list[dict[str, str]]) -> set[str]:
    """Whatever must not be shown, in all forms in which it may be written."""
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
def administrator(rig: TokenPlace, namespace: str) -> Iterator[str]:
    """The name of a ServiceAccount that may do everything, as an agent does."""
    name = f"agent-{uuid.uuid4().hex[:12]}"
    rig.create(obj("ServiceAccount", "agent"))
    bound = role_binding(name, account("agent", namespace), of=CLUSTER_ROLES, to="cluster-admin")
    rig.create(bound)
    yield "agent"
    rig.delete(CLUSTER_ROLE_BINDINGS, name)


def test_an_agent_lives_on_a_token_that_it_renews_itself(
    cluster: Cluster, rig: TokenPlace, namespace: str, administrator: str, audit: Audit, tmp_path: Path
) -> None:
    """What it starts with ends soon; the test does what a kubelet does, and keeps a file like the Secret."""
    file = tmp_path / "token"
    bound = rig.create(secret("bootstrap"))["metadata"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "bootstrap", "uid": bound["uid"]}
    request = {"spec": {"audiences": [API_SERVER], "expirationSeconds": 600, "boundObjectRef": reference}}
    path = rig.path("ServiceAccount", administrator, subresource="token")
    first = rig.api.create(path, request)["status"]["token"]
    file.write_text(first)
    rig.ask("own", account=administrator, TOKEN_EXPIRATION_DURATION="10m")
    connection = _kubeconfig_with_token_file(cluster, file, tmp_path / "kubeconfig")
    with AgentProcess(config(namespace, audiences=[]), kubeconfig=connection) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        second = eventually(lambda: rig.data("own").get("token"), "a token of its own")
        _replace(file, second)
        rig.delete("Secret", "bootstrap")  # and with it the token that it started with
        eventually(lambda: not _is_accepted(rig, first), "the first token to end")

        rig.ask("work", account="worker")
        eventually(lambda: rig.data("work").get("token"), "work to be done")
        if (
            minor_version(cluster) >= 30
        ):  # before, audit does not record it; but the first one is good for nothing any more
            assert _credential(audit, namespace, administrator) == _id(second)

        rig.renew("own")
        third = eventually(lambda: _other(rig.data("own").get("token", ""), second), "its token to be renewed")
        _replace(file, third)
        assert _is_accepted(rig, third)
        assert agent.process.poll() is None


def _replace(file: Path, text: str) -> None:
    """At once, so that no reader finds a part of it."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def _kubeconfig_with_token_file(cluster: Cluster, file: Path, path: Path) -> Path:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for entry in document["users"]:
        entry["user"] = {"tokenFile": str(file)}
    path.write_text(yaml.safe_dump(document))
    return path


def _is_accepted(rig: TokenPlace, token: str) -> bool:
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


@pytest.mark.parametrize(("audiences", "is_reported"), [(["others"], True), (["gardener"], False), ([], False)])
def test_it_is_reported_that_the_api_server_does_not_know_an_audience(
    audiences: list[str], is_reported: bool, cluster: Cluster, namespace: str, rig: TokenPlace
) -> None:
    reported = "The API server of the target cluster does not accept tokens with the configured audiences"
    with AgentProcess(config(namespace, audiences=audiences), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=PATIENCE)
        rig.ask("first")
        eventually(lambda: rig.data("first").get("token"), "a token")
        if is_reported:
            eventually(lambda: reported in agent.log, "the warning")
        rig.ask("second")
        eventually(lambda: rig.data("second").get("token"), "a token")
    assert agent.log.count(reported) == is_reported
