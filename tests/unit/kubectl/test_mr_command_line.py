"""The command line as a whole: commands, help, errors, and those commands that need no cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from gardener.distribution import version
from kit import kubeconfigs
from kit.kinds import custom_resource, definition
from kit.objects import managed_resource, obj, secret
from kubectl.errors import UserError, not_found
from kubectl.garden import __main__ as gardener_program
from kubectl.mr.__main__ import COMMANDS, app, complete, load
from kubectl.seed_sets.__main__ import app as mss
from kubectl.session import Where, candidates, chosen_kubeconfig

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
    assert "Did you mean one of: 'decode', 'describe'?" in result.output


HEAVY = (
    *("aiohttp", "cryptography", "jinja2", "msgspec", "opentelemetry", "prometheus_client", "pydantic", "rich"),
    *("structlog", "typer", "uvloop", "yarl", "agent", "config", "webhooks", "kubectl.mr.commands.admit"),
)
"""What takes long to import, and most commands do without."""


@pytest.mark.parametrize(
    "arguments", [("get", "--help"), ("get", "-A"), ("get", "shop", "-o", "yaml"), ("tree", "shop"), ("events",)]
)
def test_a_command_imports_nothing_that_others_need(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """As far as to a request; there is no API server."""
    content = kubeconfigs.kubeconfig({"token": "t"}, server="https://127.0.0.1:1")
    file = kubeconfigs.written(tmp_path / "config", content)
    code = f"""
import sys
from kubectl.mr.__main__ import app
try:
    app({arguments!r})
except SystemExit as end:
    print("imported", end.code, *(module for module in {HEAVY!r} if module in sys.modules))
"""
    environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(file), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    requested = "--help" not in arguments
    assert ("Connection refused" in done.stderr) is requested, done.stderr
    assert done.stdout.splitlines()[-1] == f"imported {int(requested)}"


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["de"], ["describe", "delete", "decode"]),
        (["get", "--no-"], ["--no-headers"]),
        (["wait", "shop", "--for", ""], ["ready", "deleted"]),
        (["describe", "shop"], []),  # there is no cluster
    ],
)
def test_kubectl_gets_completions(
    words: list[str], completions: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-mr", *words])
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    complete()
    assert capsys.readouterr().out.split() == [*completions, ":4"]


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["w"], ["why", "wait", "wake"]),
        (["rotate", "c"], ["credentials", "ca"]),
        (["wait", "rose", "--for", "h"], ["hibernated"]),
        (["move", "rose", "--to", ""], []),  # there is no cluster
        (["why", "se"], ["seed", "secretbinding", "seedautoscaler"]),
        (["why", "seed", ""], []),
        (["why", "x", ""], []),
    ],
)
def test_kubectl_gets_completions_of_the_other_plugin(
    words: list[str], completions: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-gardener", *words])
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    gardener_program.complete()
    assert capsys.readouterr().out.split() == [*completions, ":4"]


@pytest.mark.parametrize(
    ("shell", "script", "loaded_by"),
    [
        ("bash", ".bash_completions/kubectl-mr.sh", ".bashrc"),
        ("zsh", ".zfunc/kubectl-mr.zsh", ".zshrc"),
        ("fish", ".config/fish/completions/kubectl-mr.fish", None),
    ],
)
def test_completion_is_installed_once(
    shell: str, script: str, loaded_by: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    if loaded_by:
        (tmp_path / loaded_by).write_text("# mine\n")
    for _ in range(2):
        assert run("--install-completion").exit_code == 0
    written = (tmp_path / script).read_text()
    assert f"_KUBECTL_MR_COMPLETE={shell}_complete" in written
    assert run("--show-completion").stdout.strip() == written.strip()
    if loaded_by:
        lines = (tmp_path / loaded_by).read_text().splitlines()
        assert lines[0] == "# mine"
        assert [script in line for line in lines].count(True) == 1


def test_a_shell_without_completion_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/csh")
    result = run("--install-completion")
    assert result.exit_code == 2
    assert "no completion for the shell 'csh'; use one of bash, zsh, fish" in result.stderr


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
def test_errors_list_which_contexts_there_are(tmp_path: Path, where: dict[str, Any], message: str, hint: str) -> None:
    file = kubeconfig(tmp_path / "one", "a", "b")
    with pytest.raises(UserError, match=message) as raised:
        chosen_kubeconfig(Where(kubeconfig=file, **where))
    assert hint in raised.value.hint


def test_no_user_is_impersonated_silently(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "one", "a", current="a", user={"as": "somebody"})
    with pytest.raises(UserError, match="impersonates"):
        chosen_kubeconfig(Where(kubeconfig=file))
    assert chosen_kubeconfig(Where(kubeconfig=file, user="somebody"))[0] == file


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


def test_names_that_are_nearly_right_are_suggested() -> None:
    def hint(name: str) -> str:
        return not_found("ManagedResource", name, ["shop", "other"], where="a-long-namespace/", remedy="look").hint

    assert hint("shpo") == "did you mean a-long-namespace/shop?"
    assert hint("xyz") == "look"  # not all that share a namespace are similar


def test_it_is_called_as_kubectl_calls_it() -> None:
    shown = run("descibe", "x").stderr + run("describe").stderr + run("get", "--help").stdout + run("--help").stdout
    assert "Usage: kubectl mr describe" in shown
    assert "Usage: kubectl mr get [OPTIONS] [NAME]..." in shown
    assert "kubectl-mr" not in shown
    command = [sys.executable, "-m", "kubectl.mr", "descibe"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Try 'kubectl mr --help' for help" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (("--version",), 0, "kubectl mr "),
        (("descibe",), 2, "No such command"),
        (("get", "--kubeconfig", "/nonexistent"), 1, "there is no kubeconfig"),
    ],
)
def test_the_process_ends_with_the_code_of_the_command_and_all_its_output(
    arguments: tuple[str, ...], code: int, shown: str
) -> None:
    command = [sys.executable, "-m", "kubectl.mr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert shown in done.stdout + done.stderr


def test_it_shows_its_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"kubectl mr {version()}\n")


@pytest.mark.parametrize("command", [("suspend", "-r", "x"), ("resume",), ("reconcile",), ("wait",)])
@pytest.mark.parametrize("selection", [(), ("shop", "--all"), ("shop", "-A")])
def test_either_names_or_all(tmp_path: Path, command: tuple[str, ...], selection: tuple[str, ...]) -> None:
    file = kubeconfigs.written(
        tmp_path / "config", kubeconfigs.kubeconfig({"token": "t"}, server="https://127.0.0.1:1")
    )
    result = run(*command, *selection, "--kubeconfig", str(file))
    assert result.exit_code == 2, result.output
    assert "--all" in result.stderr


def test_a_group_without_a_user_is_an_error(tmp_path: Path) -> None:
    file = kubeconfigs.written(
        tmp_path / "config", kubeconfigs.kubeconfig({"token": "t"}, server="https://127.0.0.1:1")
    )
    result = run("get", "--as-group", "admins", "--kubeconfig", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--as-group needs a user" in result.stderr


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
    assert "standard input: index 0: line 2" in result.stderr


def test_decode_reports_what_is_broken() -> None:
    result = run("decode", "-", stdin=json.dumps(secret("a", data={"x.br": "eHh4"})))
    assert result.exit_code == 1
    assert "a, x.br: the Brotli stream is truncated" in result.stderr


@pytest.mark.parametrize("content", [{"data": {"a": "no base64!"}}, {"data": {"a": 1}}, {"stringData": {"a": 1}}])
def test_a_secret_that_no_api_server_would_take_is_an_error(content: dict[str, Any]) -> None:
    result = run("decode", "-", stdin=json.dumps(secret("a", **content)))
    assert result.exit_code == 1
    assert "the data of Secret a is not base64" in result.stderr


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


def test_render_reports_fields_that_a_definition_does_not_have() -> None:
    kind = custom_resource("example.com", "Widget")
    crd = definition(kind)
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    widget = obj("example.com/v1 Widget", "shop/w", spce={"size": 1})
    result = run("render", "-f", "-", stdin=yaml.safe_dump_all([crd, widget]))
    assert result.exit_code == 0, result.output
    assert result.stderr == '⚠ Widget/shop/w: unknown field "spce"\n'


def test_render_reports_what_could_not_be_applied() -> None:
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


def test_a_kustomization_is_built_by_an_available_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    not_asked = "- system-components-config: not called, because of the labels of the namespace"
    assert {"Pod/shop/storefront-*", "+ bin-packing", "✔ seccomp-profile changes", not_asked} <= set(lines)


def test_admit_without_the_namespace_queries_as_for_one_without_labels(files: dict[str, str]) -> None:
    result = run("admit", "-f", files["deployment"], "--config", files["config"], "-o", "json")
    assert result.exit_code == 0, result.output
    deployment, pod = json.loads(result.stdout)["items"]
    assert deployment["spec"]["replicas"] == 1
    assert pod["spec"]["schedulerName"] == "bin-packing"
    assert "securityContext" not in pod["spec"]


def test_admit_shows_who_refuses_and_why(files: dict[str, str]) -> None:
    record = obj("extensions.gardener.cloud/v1alpha1 DNSRecord", "shop/a", spec={})
    Path(files["deployment"]).write_text(json.dumps(record))
    result = run("admit", "-f", files["deployment"], "--config", files["config"])
    assert result.exit_code == 1
    assert "✗ DNSRecord/shop/a is refused by validation.extensions.dnsrecords" in result.stderr


def test_admit_shows_what_is_wrong_with_the_configuration(files: dict[str, str]) -> None:
    Path(files["config"]).write_text("kind: Nonsense")
    result = run("admit", "-f", files["deployment"], "--config", files["config"])
    assert result.exit_code == 1
    assert "Nonsense" in result.stderr


@pytest.mark.parametrize(
    ("plugin", "program"), [(app, "kubectl-mr"), (gardener_program.app, "kubectl-gardener"), (mss, "kubectl-mss")]
)
def test_each_plugin_names_itself_to_api_servers(plugin: click.Group, program: str) -> None:
    with plugin.make_context("renamed", [next(iter(plugin.commands))]) as context:
        assert context.obj == program
