"""Whatever goes wrong, nothing that is secret is disclosed: not in logs, Events, conditions, metrics, pages or answers.

Everything that comes out of a Secret, a kubeconfig, a header or a key holds a mark; most of it is broken, since errors
like to quote what they are about. Then all output is searched for the mark, as it is and in base64.
"""

import asyncio
import base64
import json
import signal
import ssl
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
import yaml

from devcluster.cluster import Cluster
from gardener import keys
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import managed_resource, obj, placed, pod, secret
from kit.processes.agent import AgentProcess, configuration
from kit.processes.webhooks import HOST, SECCOMP, WebhookProcess, drop, pod_review, trusting
from kit.world import Place
from kube.objects import Object
from kube.runtime.connection import load_kubeconfig
from kube.runtime.kubeconfig import ConfigurationError
from localprocesses.ports import free_port

PATIENCE = 300.0
MARK = "hushK7wq2Zx9"
"""Twelve characters, with which everything begins that may not be seen."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def forms(text: str) -> set[str]:
    """The text as it may be written, in base64 with anything before and behind it, too."""
    found = {text, text.encode("utf-16-le").decode("latin-1")}
    for before in range(3):
        encoded = base64.b64encode(b"x" * before + text.encode()).decode()
        # What depends on its neighbours is left out.
        found.add(encoded[-(-before * 8 // 6) : (before + len(text)) * 8 // 6])
    return found


def check(outputs: dict[str, str], secrets: set[str]) -> None:
    hidden = {form for secret in secrets for form in forms(secret)}
    found = {
        where: [text[max(0, text.find(form) - 200) :][:300] for form in hidden if form in text]
        for where, text in outputs.items()
    }
    assert {where: texts for where, texts in found.items() if texts} == {}
    assert all(outputs.values()), [where for where, text in outputs.items() if not text]


def test_the_search_finds_the_mark_wherever_it_stands() -> None:
    for before in ("", "a", "ab", "abc"):
        for text in (f"{before}{MARK}", base64.b64encode(f"{before}{MARK} and more".encode()).decode()):
            with pytest.raises(AssertionError):
                check({"log": f"error: {text}"}, {MARK})
    check({"log": f"error: {MARK[1:]}"}, {MARK})


# --- what the agent is given


def encoded(content: bytes | str) -> str:
    return base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()


UNREADABLE: dict[str, bytes] = {
    "alias.yaml": f"password: *{MARK}".encode(),
    "alias-again.yaml": f"a: &x 1\nb: &x 2\npassword: *{MARK}".encode(),
    "open.yaml": f"password: [{MARK}".encode(),
    "quote.yaml": f'password: "\\q{MARK}"'.encode(),
    "separator.yaml": f'a: b\n--- {{"password": "{MARK}"}}\n'.encode(),
    "tag.yaml": f"password: !!int {MARK}".encode(),
    "binary.yaml": f"password: !!binary {MARK}!".encode(),
    "scalar.yaml": MARK.encode(),
    "list.yaml": f"- {MARK}".encode(),
    "key.yaml": f"? [{MARK}]\n: a".encode(),
    "indent.yaml": f"a:\n  b: c\n {MARK}".encode(),
    "metadata.yaml": f"apiVersion: v1\nkind: Secret\nmetadata: {MARK}".encode(),
    "labels.yaml": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a, labels: {{a: [{MARK}]}}}}".encode(),
    "open.json": f'{{"password": "{MARK}'.encode(),
    "comma.json": f'{{"password": "{MARK}" "a": 1}}'.encode(),
    "surrogate.json": f'{{"apiVersion": "v1", "password": "{MARK}\\ud800"}}'.encode(),
    "not-utf-8.yaml": f"password: {MARK}".encode() + b"\xff",
    "not-packed.br": MARK.encode(),
    "cut-off.br": brotli.compress(MARK.encode() * 20)[:-4],
    "packed.yaml.br": brotli.compress(f"password: *{MARK}".encode()),
}
UNUSABLE: dict[str, bytes] = {
    "directive.yaml": f"%{MARK} x\n---\na: b".encode(),
    "template.yaml": f"apiVersion: a/v1\nkind: A\nmetadata: {{name: a}}\nspec: {{volumeClaimTemplates: {MARK}}}".encode(),
}
GOOD = secret("good", {"password": MARK}, annotations={LAST_APPLIED: f'{{"data":"{MARK}"}}'})
CONTAINER = {
    "name": "c",
    "image": "i",
    "command": ["run", f"--password={MARK}"],
    "args": [f"--token={MARK}"],
    "env": [{"name": "PASSWORD", "value": f"{MARK} \"and\" 'more'"}],
}

OTHER_CONTAINER = {
    **CONTAINER,
    "command": ["run", *"abcdefgh", f"--password={MARK} other"],
    "env": [{"name": "PASSWORD", "value": f"{MARK} other"}],
}


def job(name: str, **pod_spec: Any) -> Object:
    spec = {"restartPolicy": "Never", "containers": [CONTAINER], **pod_spec}
    return obj("Job", name, spec={"template": {"metadata": {"labels": {"app": "a"}}, "spec": spec}})


REFUSED: dict[str, Object] = {
    "no-base64": secret("no-base64", data={"password": f"{MARK} is no base64!"}),
    "no-map": secret("no-map", data=[MARK]),
    "no-string": secret("no-string", stringData={"password": {MARK: MARK}}),
    "no-json": secret(
        "no-json", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": f'{{"auths": {MARK}'}
    ),
    "no-user": secret("no-user", type="kubernetes.io/basic-auth", stringData={"token": MARK}),
    "no-type": secret("no-type", {"password": MARK}, type=[MARK]),
    "no-policy": pod("no-policy", restartPolicy="Whatever", containers=[CONTAINER]),
    "both": job(
        "both",
        containers=[
            {
                **CONTAINER,
                "env": [
                    {"name": "P", "value": MARK, "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
                    {"name": "", "value": MARK},
                    {"name": "Q", "value": [MARK]},
                ],
            }
        ],
    ),
}
CHANGED: dict[str, tuple[Object, Object]] = {
    "immutable": (
        secret("immutable", {"password": MARK}, immutable=True),
        secret("immutable", {"password": f"{MARK} other"}, immutable=True),
    ),
    "type": (secret("type", {"password": MARK}, type="Opaque"), secret("type", {"password": MARK}, type="other")),
    "pod": (
        pod("pod", restartPolicy="Never", containers=[CONTAINER]),
        pod("pod", restartPolicy="Never", containers=[OTHER_CONTAINER]),
    ),
    "job": (job("job"), job("job", hostname="other")),
}
"""What may not be updated."""


class Scene(Place):
    """ManagedResources in a namespace, and what is reported of them."""

    def manage(self, name: str, data: dict[str, bytes]) -> None:
        applied = {LAST_APPLIED: f'{{"stringData":"{MARK}"}}'}
        self.put(secret(f"bundle-{name}", data, annotations=applied))
        self.put(managed_resource(name, spec={"secretRefs": [{"name": f"bundle-{name}"}]}))

    def manage_object(self, name: str, obj: Object) -> None:
        self.manage(name, {"object.json": json.dumps(placed(obj, self.namespace)).encode()})

    def reason(self, name: str) -> str:
        """Of the condition that reports whether it was applied."""
        return str(self.condition(name, "ResourcesApplied").get("reason", ""))

    def message(self, name: str) -> str:
        return str(self.condition(name, "ResourcesApplied").get("message", ""))

    def ask_for_token(self, name: str, kubeconfig: str) -> None:
        account = {keys.SERVICE_ACCOUNT_NAME: "sa", keys.SERVICE_ACCOUNT_NAMESPACE: self.namespace}
        marks = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
        self.create(secret(name, {"kubeconfig": kubeconfig}, labels=marks, annotations={**account, LAST_APPLIED: MARK}))

    def remove_all(self) -> None:
        """Once no agent is there any more, which would have to let ManagedResources go."""
        for found in self.list("ManagedResource"):
            self.patch("ManagedResource", found["metadata"]["name"], {"metadata": {"finalizers": None}})
            self.delete("ManagedResource", found["metadata"]["name"])

    def events(self) -> str:
        return json.dumps(self.list("Event"))


def fetched(url: str, *, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {MARK}", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return f"{answer.status} {answer.headers} {answer.read().decode(errors='replace')}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.headers} {error.read().decode(errors='replace')}"


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Path:
    """One that works, of a user whose password may not be seen."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"].append({"name": "other", "user": {"username": "other", "password": MARK}})
    document["users"].append({"name": "third", "user": {"token": MARK, "client-key-data": encoded(MARK)}})
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def keys_in(kubeconfig: Path) -> set[str]:
    """Parts of what the process really authenticates itself with."""
    found = set()
    for entry in yaml.safe_load(kubeconfig.read_text())["users"]:
        for name in ("token", "password", "client-key-data"):
            if value := entry["user"].get(name):
                found.add(value[-40:] if name == "token" else value[60:100] if len(value) > 200 else value)
    return found


def test_the_agent_discloses_no_secret(cluster: Cluster, namespace: str, kubeconfig: Path) -> None:
    install_crd(cluster)
    scene = Scene(cluster, namespace)
    page_port = free_port()
    config = configuration(
        namespace,
        logFormat="json",
        logLevel="debug",
        debugging={"enableProfiling": True, "enableContentionProfiling": True},
        server={"statusPage": {"port": page_port}},
        controllers={
            "tokenRequestor": {"enabled": True},
            "garbageCollector": {"enabled": True},
            "managedResource": {"syncPeriod": "15s"},
        },
    )
    with AgentProcess(config, kubeconfig=kubeconfig) as agent:
        agent.wait_until_leading(seconds=PATIENCE)
        for name, (first, _) in CHANGED.items():
            scene.manage_object(name, first)
        scene.manage_object("good", GOOD)
        scene.manage("unreadable", UNREADABLE)
        scene.manage("unusable", UNUSABLE)
        for name, refusable in REFUSED.items():
            scene.manage_object(f"refused-{name}", refusable)
        scene.ask_for_token("broken", f"users: *{MARK}")
        scene.ask_for_token("wrong", json.dumps({"users": [{"name": "u", "user": {"password": [MARK]}}]}))
        eventually(lambda: all(scene.reason(name) == "ApplySucceeded" for name in (*CHANGED, "good")), "what is right")
        for name, (_, second) in CHANGED.items():
            scene.manage_object(name, second)
        refused = [*CHANGED, "unusable", *(f"refused-{name}" for name in REFUSED)]
        eventually(
            lambda: all(scene.reason(name) == "ApplyFailed" for name in refused if name != "immutable"), "refusals"
        )
        eventually(lambda: scene.reason("unreadable") == "DecodingFailed", "what can't be read")
        eventually(
            lambda: all(f'"{name}"' in scene.events() for name in ("unreadable", "job", "broken", "wrong")), "events"
        )
        eventually(lambda: "Could not decode" in scene.message("unreadable"), "why it can't be read")
        # They are reported with all that they consist of, so there was something to hide.
        eventually(lambda: '"Command": […]' in scene.message("pod"), "what the Pod consists of")
        eventually(lambda: '"Name":"PASSWORD","Value":"[redacted]"' in scene.message("job"), "what the Job consists of")

        debug = f"http://127.0.0.1:{agent.metrics_port}"
        probes = f"http://127.0.0.1:{agent.probe_port}"
        outputs = {
            path: fetched(f"{debug}{path}")
            for path in ("/metrics", "/debug/pprof/", "/debug/pprof/trace", "/debug/pprof/profile?seconds=1", "/none")
        }
        outputs |= {path: fetched(f"{probes}{path}") for path in ("/healthz?verbose", "/readyz?verbose", "/nothing")}
        of_each = (f"/managedresources/{namespace}/{name}" for name in [*refused, "good", "unreadable"])
        pages = ["/", "/changes", *of_each]
        outputs |= {f"page {path}": fetched(f"http://localhost:{page_port}{path}") for path in pages}
        outputs["events"] = scene.events()
        outputs["ManagedResources"] = json.dumps(scene.list("ManagedResource"))
        agent.signal(signal.SIGABRT)
        assert agent.wait() == -signal.SIGABRT
        outputs["log"], outputs["output"] = agent.log, f"- {agent.output}"
    scene.remove_all()
    assert '"level":"debug"' in outputs["log"]
    check(outputs, {MARK, *keys_in(kubeconfig)})


# --- kubeconfigs and keys that can't be used


def broken_kubeconfigs() -> Iterator[tuple[str, str]]:
    def of_user(user: str, server: str = "https://127.0.0.1:1") -> str:
        return (
            f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
            f"current-context: x\nusers: [{{name: u, user: {user}}}]\n"
        )

    yield "alias", of_user(f"{{password: *{MARK}}}")
    yield "tag", of_user(f"{{password: !{MARK} x}}")
    yield "number", of_user(f"{{password: !!int {MARK}}}")
    yield "open", of_user(f"{{password: '{MARK}}}")
    yield "token", of_user(f'{{token: "{MARK}\\nX: y"}}')
    yield "key", of_user(f"{{client-certificate-data: {encoded(MARK)}, client-key-data: {encoded(MARK)}}}")
    yield "exec", of_user(f"{{token: {MARK}, exec: {{command: sh, env: [{{name: P, value: {MARK}}}]}}}}")
    yield "url", of_user("{}", f"ftp://me:{MARK}@127.0.0.1")


KUBECONFIGS = dict(broken_kubeconfigs())


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_a_kubeconfig_that_cannot_be_used_is_not_quoted(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(KUBECONFIGS[name])
    with pytest.raises(ConfigurationError) as refused:
        load_kubeconfig(path)
    trace = "".join(traceback.format_exception(refused.value))
    check({"text": str(refused.value), "trace": trace.replace(str(path), "")}, {MARK})


def test_an_agent_that_ends_because_of_a_kubeconfig_does_not_quote_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIGS["number"])
    with AgentProcess(configuration("ns", logLevel="debug"), kubeconfig=path) as agent:
        assert agent.wait(seconds=PATIENCE)
    assert "cannot read the kubeconfig" in agent.output + agent.log
    check({"all": agent.output + agent.log}, {MARK})


# --- webhooks


async def test_the_webhooks_disclose_no_secret(cluster: Cluster, kubeconfig: Path) -> None:
    names = ("seccompProfile", "tokenInvalidator", "extensionValidation", "highAvailabilityConfig")
    server = WebhookProcess(
        {name: {"enabled": True} for name in names},
        kubeconfig=kubeconfig,
        logFormat="json",
        logLevel="debug",
        debugging={"enableProfiling": True},
        controllers={"tokenInvalidator": {"enabled": True}},
    )
    with server:
        await server.until_ready()
        key = server.secret.directory.joinpath("tls.key").read_text().splitlines()
        answers = await asyncio.gather(*(_sent(server, sent) for sent in _requests()))
        certificate = server.secret.directory.joinpath("tls.crt").read_bytes()
        broken = f"-----BEGIN PRIVATE KEY-----\n{encoded(MARK * 10)}\n-----END PRIVATE KEY-----\n"
        server.secret.write(certificate, broken.encode())
        await server.until(lambda: "Could not read the TLS certificate" in server.log, what="the broken key")
        debug, probes = (f"http://127.0.0.1:{port}" for port in (server.metrics_port, server.probe_port))
        outputs = {
            path: await asyncio.to_thread(fetched, f"{debug}{path}") for path in ("/metrics", "/debug/pprof/trace")
        }
        outputs["/readyz"] = await asyncio.to_thread(fetched, f"{probes}/readyz?verbose")
        await asyncio.to_thread(server.stop)
        outputs["log"], outputs["output"] = server.log, f"- {server.output}"
    assert sum(b"200 OK" in answer for answer in answers) > 3
    check(outputs, {MARK, *keys_in(kubeconfig), *(line[:30] for line in key[1:-1])})


def _requests() -> Iterator[bytes]:
    secret_review = pod_review()
    secret_review["request"] |= {
        "kind": {"group": "", "version": "v1", "kind": "Secret"},
        "object": GOOD,
        "oldObject": secret("good", data=[MARK]),
    }
    wrong = pod_review(containers=[CONTAINER], securityContext=MARK)
    bodies: list[Any] = [
        secret_review,
        pod_review(containers=[CONTAINER]),
        wrong,
        {**secret_review, "request": {**secret_review["request"], "uid": {"a": MARK}}},
        {**secret_review, "request": {**secret_review["request"], "object": MARK}},
        f'{{"kind": "AdmissionReview", "request": {{"object": {{"data": "{MARK}',
        f'{{"{MARK}": {MARK}',
    ]
    for path in (SECCOMP, "/webhooks/invalidate-service-account-token-secret", "/webhooks/high-availability-config"):
        for body in bodies:
            text = (body if isinstance(body, str) else json.dumps(body)).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer {MARK}\r\n"
            yield f"{head}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text
    yield f"POST {SECCOMP} HTTP/1.1\r\nAuthorization {MARK}\r\n\r\n".encode()
    yield f"{MARK}\r\n\r\n".encode()
    yield f"POST {SECCOMP} HTTP/1.1\r\nContent-Length: {MARK}\r\n\r\n".encode()
    yield f"POST {SECCOMP} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{MARK}\r\n".encode()


async def _sent(server: WebhookProcess, content: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, server.port, ssl=trusting())
    writer.write(content)
    answer = b""
    try:
        async with asyncio.timeout(60):
            while part := await reader.read(65536):
                answer += part
    except ConnectionError:
        pass
    await drop(writer)
    return answer
