"""Each command of `kubectl mr` in each form of output that it offers, on ManagedResources in all states."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from devcluster.cluster import Cluster
from gardener.keys import IGNORE, ORIGIN
from gardener.managed_resource.history import CHANGE_CAUSE, revision_secret
from kit.managed_resources import install_crd
from kit.objects import bundle, conditions, config_map, managed_resource, obj, reference, secret
from kit.world import Place
from kube.resources import NAMESPACES
from kubectl.mr.__main__ import COMMANDS, app

TIMES = {"lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
REASON = {"reason": "R", "message": "Could not", **TIMES}
STATES = ("good", "pending", "failed", "unhealthy", "suspended", "deleting", "unreadable", "missing")
"""The names of ManagedResources; each has a ConfigMap of its own name."""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("describe", "tree", "diff", "get", "history"), ("{state}",)),
    "trace": ("configmap/{state}",),
    "events": ("{state}",),
    "decode": ("{state}",),
    "stats": (),
    "check": (),
    "encode": ("-", "--name", "x"),
    "render": ("-f", "-"),
    "admit": ("-f", "-", "--config", "{config}"),
}
"""Of the commands that have forms of output; `-n` is added."""
CONFIG = """\
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {resourceNamespace: garden}
webhooks: {seccompProfile: {enabled: true}}
"""


def forms_of(command: str) -> list[str]:
    """Those that its help offers."""
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    offered = re.search(r"--output +[<\[]([a-z|]+)[>\]]", shown)
    return offered[1].split("|") if offered else []


@pytest.fixture(scope="module")
def place(cluster: Cluster, devcluster_run: object) -> Iterator[Place]:
    """No agent handles what is in it, so states stay as they are."""
    install_crd(cluster)
    place = Place(cluster, "formats-of-kubectl-mr")
    place.api.create(NAMESPACES.path(), obj("Namespace", place.namespace))
    for state in STATES:
        _create(place, state)
    place.delete("ManagedResource", "deleting")
    yield place
    place.patch("ManagedResource", "deleting", {"metadata": {"finalizers": None}})
    place.api.delete(NAMESPACES.path(name=place.namespace))


def _create(place: Place, state: str) -> None:
    marks = {ORIGIN: f"{place.namespace}/{state}"}
    if state != "missing":
        text = config_map(state, {"a": "b"}, namespace=place.namespace)
        unreadable = secret(state, {"objects.yaml": "a: ["})
        place.create(unreadable if state == "unreadable" else bundle(state, text))
        place.create(config_map(state, {"a": "changed"}, annotations=marks))
    about: dict[str, Any] = {"annotations": {IGNORE: "true"}} if state == "suspended" else {}
    if state == "deleting":
        about = {"finalizers": ["example.com/hold"]}
    created = place.create(managed_resource(state, spec={"class": "unused"}, **about))
    if state in {"good", "failed"}:
        for number in (1, 2):
            of = {**created, "metadata": {**created["metadata"], "annotations": {CHANGE_CAUSE: f"cause {number}"}}}
            place.create(revision_secret(of, number=number, digest=f"d{number}", names=[state], value=b"x"))
    reported = conditions(
        applied="False" if state in {"failed", "unreadable", "missing"} else "True",
        healthy="False" if state == "unhealthy" else "True",
        **REASON,
    )
    listed = [
        reference("v1 ConfigMap", f"{place.namespace}/{state}"),
        reference("unknown.example.com/v1 Kind", f"{place.namespace}/{state}"),
    ]
    if state != "pending":
        status = {"conditions": reported, "resources": listed, "observedGeneration": 1}
        place.patch("ManagedResource", state, {"status": status}, subresource="status")
    uid = created["metadata"]["uid"]
    involved = reference("resources.gardener.cloud/v1alpha1 ManagedResource", f"{place.namespace}/{state}", uid=uid)
    place.create(obj("Event", state, involvedObject=involved, reason="R", message="text", type="Normal"))


CASES = [
    (command, state)
    for command, arguments in ARGUMENTS.items()
    for state in (STATES if "{state}" in " ".join(arguments) else ("",))
]


def test_the_table_has_all_commands_with_forms_of_output() -> None:
    assert {command for command in COMMANDS if forms_of(command)} == set(ARGUMENTS)


@pytest.mark.parametrize(("command", "state"), CASES)
def test_each_form_of_output_is_what_it_is_called(place: Place, tmp_path: Path, command: str, state: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    arguments = [part.format(state=state, config=config) for part in ARGUMENTS[command]]
    if command != "admit":
        arguments += ["-n", place.namespace]
    for form in ("", *forms_of(command)):
        result = CliRunner().invoke(
            app,
            [command, *arguments, *(["-o", form] if form else [])],
            input=yaml.safe_dump(config_map("x", {"a": "b"})),
            env={"KUBECONFIG": str(place.cluster.kubeconfig), "NO_COLOR": "1"},
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), (form, result.exception)
        assert result.exit_code in {0, 1, 2}, (form, result.output)
        assert "Usage:" not in result.stderr, (form, result.output)
        assert result.output, form
        demand_form(form, result.stdout)


def demand_form(form: str, printed: str) -> None:
    if form == "json" and printed:
        json.loads(printed)
    elif form == "yaml":
        assert all(isinstance(document, dict | list) for document in yaml.safe_load_all(printed))
    elif form == "name":
        assert all(line.count("/") == 1 for line in printed.splitlines())
