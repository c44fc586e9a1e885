"""The command line as a whole: commands, help, errors, and those commands that need no cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from kit import kubeconfigs
from kit.objects import managed_resource, obj, secret
from kubectl_mr.__main__ import COMMANDS, app, load
from kubectl_mr.completion import for_kubectl
from kubectl_mr.errors import UserError, not_found
from kubectl_mr.session import Where, candidates, chosen_kubeconfig

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {text: Good morning}\n"


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=stdin, prog_name="kubectl mr", env={"NO_COLOR": "1"})


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert " ".join(COMMANDS[name].split()[:4]) in " ".join(result.output.split())
    assert load(name).name == name


def test_a_typo_is_answered_by_what_was_meant() -> None:
    result = run("descibe", "x")
    assert result.exit_code == 2
    assert "Did you mean 'describe'" in result.output


def test_a_command_imports_nothing_that_others_need() -> None:
    code = (
        "import sys; from kubectl_mr.__main__ import load; load('get');"
        "print(*(m for m in ('cryptography', 'webhooks', 'kubectl_mr.commands.admit') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["de"], ["describe", "decode"]),
        (["get", "--no-"], ["--no-headers"]),
        (["wait", "shop", "--for", ""], ["ready", "deleted"]),
        (["describe", "shop"], []),  # there is no cluster
    ],
)
def test_kubectl_gets_completions(
    words: list[str], completions: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-mr", *words])
    for name in ("_KUBECTL_MR_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    with pytest.raises(SystemExit):
        for_kubectl()
    assert capsys.readouterr().out.split() == [*completions, ":4"]


def kubeconfig(path: Path, *contexts: str, current: str = "", user: dict[str, Any] | None = None) -> Path:
    entries = [{"name": name, "context": {"namespace": f"of-{name}", "user": "me"}} for name in contexts]
    document = {"contexts": entries, "current-context": current, "users": [{"name": "me", "user": user or {}}]}
    return kubeconfigs.written(path, document)


def test_the_first_file_that_has_the_context_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = kubeconfig(tmp_path / "one", "a"), kubeconfig(tmp_path / "two", "a", "b", current="b")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{one}:{two}")
    assert chosen_kubeconfig(Where())[0] == two
    file, context = chosen_kubeconfig(Where(context="a"))
    assert (file, context.namespace) == (one, "of-a")


def test_without_the_variable_it_is_the_usual_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert candidates("") == [Path("/home/somebody/.kube/config")]


@pytest.mark.parametrize(
    ("where", "message", "hint"),
    [({"context": "c"}, "no context 'c'", "there are: a, b"), ({}, "no current context", "--context: a, b")],
)
def test_errors_tell_which_contexts_there_are(tmp_path: Path, where: dict[str, Any], message: str, hint: str) -> None:
    file = kubeconfig(tmp_path / "one", "a", "b")
    with pytest.raises(UserError, match=message) as raised:
        chosen_kubeconfig(Where(kubeconfig=file, **where))
    assert hint in raised.value.hint


def test_nobody_is_impersonated_silently(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "one", "a", current="a", user={"as": "somebody"})
    with pytest.raises(UserError, match="impersonates"):
        chosen_kubeconfig(Where(kubeconfig=file))


def test_without_a_kubeconfig_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    result = run("get", "--kubeconfig", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "✗ there is no kubeconfig" in result.stderr
    assert "► name one by --kubeconfig" in result.stderr


@pytest.mark.parametrize(
    "command", [("create", "shop", "-f", "-"), ("reconcile", "shop"), ("resume", "shop"), ("wait", "shop")]
)
def test_a_timeout_that_is_no_duration_is_not_taken_for_a_defect(tmp_path: Path, command: tuple[str, ...]) -> None:
    content = kubeconfigs.kubeconfig({"token": "t"}, server="https://127.0.0.1:1")
    file = kubeconfigs.written(tmp_path / "config", content)
    result = run(*command, "--timeout", "soon", "--kubeconfig", str(file))
    assert result.exit_code == 1
    assert "► write a duration such as 90s, 5m or 1h30m" in result.stderr


def test_names_that_are_nearly_right_are_told() -> None:
    assert not_found("ManagedResource", "a/shpo", ["a/shop", "a/other"], where="").hint == "did you mean a/shop?"
    assert "kubectl mr get" in not_found("ManagedResource", "a/x", [], where="").hint


def test_what_encode_writes_decode_reads() -> None:
    encoded = run("encode", "-", "--name", "hello", "-n", "garden", stdin=f"# a comment\n{CONFIG_MAP}")
    assert encoded.exit_code == 0, encoded.output
    assert "✔ Secret garden/hello: 1 document" in encoded.stderr
    decoded = run("decode", "-", stdin=encoded.stdout)
    assert decoded.stdout == f"# garden/hello, objects.yaml.br\n---\n# a comment\n{CONFIG_MAP}"
    as_json = run("decode", "-", "-o", "json", stdin=encoded.stdout)
    assert json.loads(as_json.stdout)["items"][0]["data"] == {"text": "Good morning"}


def test_encode_finds_mistakes() -> None:
    result = run("encode", "-", "--name", "hello", stdin="kind: [")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "standard input: document 1: line 2" in result.stderr


def test_decode_says_what_is_broken() -> None:
    result = run("decode", "-", stdin=json.dumps(secret("a", data={"x.br": "eHh4"})))
    assert result.exit_code == 1
    assert "a, x.br: the Brotli stream is truncated" in result.stderr


@pytest.mark.parametrize("content", [{"data": {"a": "no base64!"}}, {"data": {"a": 1}}, {"stringData": {"a": 1}}])
def test_a_secret_that_no_api_server_would_take_is_an_error(content: dict[str, Any]) -> None:
    result = run("decode", "-", stdin=json.dumps(secret("a", **content)))
    assert result.exit_code == 1
    assert "the data of Secret a is not what a Secret holds" in result.stderr


def test_render_shows_manifests_in_order_with_stamps() -> None:
    text = f"{CONFIG_MAP}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n"
    result = run("render", "-f", "-", "-n", "garden", "--name", "hello", "--managed-by", "me", stdin=text)
    assert result.exit_code == 0, result.output
    namespace, config_map = yaml.safe_load_all(result.stdout)
    assert (namespace["kind"], config_map["metadata"]["namespace"]) == ("Namespace", "default")
    assert "namespace" not in namespace["metadata"]
    assert config_map["metadata"]["annotations"]["resources.gardener.cloud/origin"] == "garden/hello"
    assert config_map["metadata"]["labels"] == {"resources.gardener.cloud/managed-by": "me"}


def test_render_takes_managed_resources_with_their_secrets() -> None:
    spec = {"secretRefs": [{"name": "hello"}], "injectLabels": {"a": "b"}}
    managed = managed_resource("garden/hello", spec=spec)
    holding = secret("garden/hello", stringData={"a.yaml": CONFIG_MAP})
    result = run("render", "-f", "-", stdin=yaml.safe_dump_all([managed, holding]))
    assert result.exit_code == 0, result.output
    [config_map] = yaml.safe_load_all(result.stdout)
    assert config_map["metadata"]["labels"]["a"] == "b"
    alone = run("render", "-f", "-", stdin=yaml.safe_dump(managed))
    assert alone.exit_code == 1
    assert "names Secrets that are not in the files: hello" in alone.stderr


def test_render_tells_what_could_not_be_applied() -> None:
    text = f"{CONFIG_MAP}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{generateName: a-}}\n"
    result = run("render", "-f", "-", "-o", "json", stdin=text)
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["items"]) == 1
    assert "generateName is not supported" in result.stderr


def test_a_directory_is_read_by_names_of_files(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.txt"):
        (tmp_path / name).write_text(CONFIG_MAP.replace("greeting", name[0]))
    result = run("render", "-f", str(tmp_path), "-o", "json")
    assert [item["metadata"]["name"] for item in json.loads(result.stdout)["items"]] == ["a", "b"]


def test_a_kustomization_is_built_by_whoever_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []")
    (tmp_path / "ignored.yaml").write_text("kind: [")
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    missing = run("render", "-f", str(tmp_path))
    assert missing.exit_code == 1
    assert "neither kustomize nor kubectl" in missing.stderr
    kustomize = programs / "kustomize"
    kustomize.write_text(f"#!/bin/sh\nprintf '%s' '{CONFIG_MAP}'\n")
    kustomize.chmod(0o755)
    assert "name: greeting" in run("render", "-f", str(tmp_path)).stdout
    kustomize.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    failed = run("render", "-f", str(tmp_path))
    assert (failed.exit_code, failed.stderr.endswith("failed:\n  broken\n")) == (1, True)


WEBHOOKS = """
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {resourceNamespace: garden}
webhooks:
  seccompProfile: {enabled: true}
  podSchedulerName: {enabled: true, schedulerName: bin-packing}
  systemComponentsConfig: {enabled: true}
  highAvailabilityConfig: {enabled: true}
  extensionValidation: {enabled: true}
"""
NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {gardener.cloud/role: shoot, high-availability-config.resources.gardener.cloud/consider: "true"}
  annotations: {high-availability-config.resources.gardener.cloud/failure-tolerance-type: node}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: storefront, namespace: shop, labels: {high-availability-config.resources.gardener.cloud/type: server}}
spec:
  replicas: 1
  selector: {matchLabels: {app: storefront}}
  template:
    metadata: {labels: {app: storefront}}
    spec: {containers: [{name: a, image: b}]}
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"config": WEBHOOKS, "namespace": NAMESPACE, "deployment": DEPLOYMENT}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def test_admit_shows_what_webhooks_would_change(files: dict[str, str]) -> None:
    result = run(
        "admit", "-f", files["deployment"], "--config", files["config"], "--namespace-file", files["namespace"]
    )
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    changes = ["✔ high-availability-config changes", "spec.replicas", "- 1", "+ 2"]
    assert lines[:5] == ["Deployment/shop/storefront", *changes]
    not_asked = "- system-components-config: not asked, because of the labels of the namespace"
    assert {"Pod/shop/storefront-*", "+ bin-packing", "✔ seccomp-profile changes", not_asked} <= set(lines)


def test_admit_without_the_namespace_asks_as_for_one_without_labels(files: dict[str, str]) -> None:
    result = run("admit", "-f", files["deployment"], "--config", files["config"], "-o", "json")
    assert result.exit_code == 0, result.output
    deployment, pod = json.loads(result.stdout)["items"]
    assert deployment["spec"]["replicas"] == 1
    assert pod["spec"]["schedulerName"] == "bin-packing"
    assert "securityContext" not in pod["spec"]


def test_admit_tells_who_refuses_and_why(files: dict[str, str]) -> None:
    record = obj("extensions.gardener.cloud/v1alpha1 DNSRecord", "shop/a", spec={})
    Path(files["deployment"]).write_text(json.dumps(record))
    result = run("admit", "-f", files["deployment"], "--config", files["config"])
    assert result.exit_code == 1
    assert "✗ DNSRecord/shop/a is refused by validation.extensions.dnsrecords" in result.stderr


def test_admit_tells_what_is_wrong_with_the_configuration(files: dict[str, str]) -> None:
    Path(files["config"]).write_text("kind: Nonsense")
    result = run("admit", "-f", files["deployment"], "--config", files["config"])
    assert result.exit_code == 1
    assert "Nonsense" in result.stderr
