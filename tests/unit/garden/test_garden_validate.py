"""`python -m webhooks garden validate`: what is reported about manifests without a cluster, and with which exit code."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.api.expressions import rules_are_checked
from gardener.api.garden.definitions import DEFINITIONS
from kube.objects import Object
from webhooks.garden import command
from webhooks.garden.command import LARGEST_FILE, main
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.offline import NotServed, report, title
from webhooks.garden.registry import KINDS

CORE = "core.gardener.cloud/v1beta1"


def project(name: str = "dev", **spec: Any) -> Object:
    return {"apiVersion": CORE, "kind": "Project", "metadata": {"name": name}, "spec": spec}


def member(*roles: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann", "roles": list(roles)}


SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "m.yaml"


def run(manifest: Path, *documents: Object | str, arguments: tuple[str, ...] = ()) -> int:
    manifest.write_text("---\n".join(each if isinstance(each, str) else yaml.safe_dump(each) for each in documents))
    return main(["validate", str(manifest), *arguments])


def findings(obj: Object) -> list[str]:
    return [str(finding) for finding in report(obj).findings]


# --- what is reported


def test_all_that_is_wrong_is_reported_at_once_each_with_its_field(manifest: Path, capsys: Any) -> None:
    assert run(manifest, project("much-too-long", members=[member("visitor")], colour="red")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'{manifest}:1: Project "much-too-long" is invalid:'
    assert '* unknown field "spec.colour"' in lines
    assert "* metadata.name: Too long: may not be more than 10 bytes" in lines
    assert any(line.startswith('* spec.members[0].roles[0]: Unsupported value: "visitor"') for line in lines)


def test_what_is_fine_is_reported_to_be_and_what_is_of_another_api_is_left_out(manifest: Path, capsys: Any) -> None:
    assert run(manifest, project(), SECRET, "# nothing\n", project("b")) == 0
    assert capsys.readouterr().out.splitlines() == [
        f'{manifest}:1: Project "dev" is fine',
        f'{manifest}:2: Secret "s" does not belong to the garden API; skipped',
        f'{manifest}:4: Project "b" is fine',
    ]


def test_warnings_are_reported_and_refuse_nothing(manifest: Path, capsys: Any) -> None:
    old = {**member(), "role": "admin"}
    del old["roles"]
    assert run(manifest, project(members=[old])) == 0
    assert f"{manifest}:1: Warning: spec.members[0].role is deprecated: use roles\n" in capsys.readouterr().out


def test_defaults_are_filled_in_before_anything_is_checked() -> None:
    assert findings(project(members=[{key: value for key, value in member().items() if key != "roles"}])) == []


def test_rules_of_the_webhooks_are_not_queried_about_what_has_no_shape() -> None:
    assert findings(project(members="ann")) != []


def test_each_item_of_a_list_is_looked_at(manifest: Path, capsys: Any) -> None:
    items = [project(), project("much-too-long")]
    assert run(manifest, {"apiVersion": "v1", "kind": "List", "items": items}) == 1
    assert f'{manifest}:1.items[1]: Project "much-too-long" is invalid:' in capsys.readouterr().out


@pytest.mark.parametrize(("given", "wrong"), [({"type": "local"}, 0), ({}, 1)])
def test_another_version_is_looked_at_in_both(given: Object, wrong: int) -> None:
    deployment = {"apiVersion": CORE, "kind": "ControllerDeployment", "metadata": {"name": "d"}, **given}
    assert len(findings(deployment)) == wrong


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A_b"}, 'metadata.name: Invalid value: "A_b"'),
    ],
)
def test_an_object_needs_a_name(meta: Object, text: str) -> None:
    (found, *_) = findings({**project(), "metadata": meta})
    assert found.startswith(text)


def test_what_was_not_looked_at_is_reported(manifest: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(manifest, project())
    assert ("cel-expr-python" in capsys.readouterr().err) is not rules_are_checked()
    monkeypatch.setattr(command, "rules_are_checked", lambda: False)
    run(manifest, project())
    output = capsys.readouterr().err
    assert "Not checked: values that are filled in from other objects, changes of stored objects" in output
    assert "Not checked: rules of CEL: they need the Python package cel-expr-python.\n" in output


SHOOT: Object = {
    "apiVersion": CORE,
    "kind": "Shoot",
    "metadata": {"namespace": "garden-dev", "name": "a"},
    "spec": {
        "cloudProfile": {"kind": "CloudProfile", "name": "local"},
        "region": "here",
        "provider": {"type": "local"},
        "kubernetes": {"version": "1.30.1"},
    },
}


def shoot(**fields: Any) -> Object:
    return {**SHOOT, "spec": {**SHOOT["spec"], **fields}}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (
            {"maintenance": {"timeWindow": {"begin": "220000+0100", "end": "220500+0100"}}},
            "spec.maintenance.timeWindow",
        ),
        ({"hibernation": {"schedules": [{"start": "99 * * * *"}]}}, "spec.hibernation.schedules[0].start"),
        ({"dns": {"domain": "co.uk"}}, "spec.dns.domain"),
        ({"networking": {"pods": "10.0.0.0/8"}}, "spec.networking.pods"),
        ({"tolerations": [{"key": "a"}, {"key": "a"}]}, "spec.tolerations[1]"),
    ],
    ids=["window", "cron", "public suffix", "workerless", "twice"],
)
def test_a_rule_that_needs_no_other_object_is_checked_wherever_it_stands_in_the_descriptor(
    fields: Object, path: str
) -> None:
    assert [finding.path for finding in report(shoot(**fields)).findings] == [path]


def test_rules_that_ask_for_other_objects_are_listed_each_once_for_a_kind(manifest: Path, capsys: Any) -> None:
    assert run(manifest, SHOOT, shoot(seedName="s"), project()) == 0
    captured = capsys.readouterr()
    assert 'Shoot "garden-dev/a" is fine, but ' in captured.out
    assert 'Project "dev" is fine\n' in captured.out
    lines = captured.err.splitlines()
    for line in (
        "Shoot: the names of project and Shoot are short enough together (needs Project)",
        "Shoot: the Seed takes the Shoot (needs Seed)",
        'Shoot: the user may update shoots/binding "garden-dev/a" (needs an API server)',
    ):
        assert lines.count(f"Not checked: {line}.") == 1
    run(manifest, SHOOT, arguments=("-o", "json"))
    (found,) = json.loads(capsys.readouterr().out)["documents"]
    assert {"rule": "the project is not being deleted", "needs": "Project"} in found["notChecked"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.reads], ids=lambda kind: kind.resource.kind)
def test_a_rule_that_may_ask_for_other_objects_has_a_sentence_to_be_listed_with(kind: Kind) -> None:
    for rule in (*kind.references, *kind.of_spec.references):
        assert title(rule), rule


def test_the_same_as_json(manifest: Path, capsys: Any) -> None:
    assert run(manifest, project("much-too-long"), SECRET, "[1]\n", arguments=("-o", "json")) == 2
    output = json.loads(capsys.readouterr().out)
    first, second, third = output["documents"]
    assert first["document"] == f"{manifest}:1"
    assert (first["kind"], first["name"], first["result"]) == ("Project", "much-too-long", "Invalid")
    assert first["findings"][0] == {
        "field": "metadata.name",
        "reason": "FieldValueTooLong",
        "message": "Too long: may not be more than 10 bytes",
    }
    assert second["result"] == third["result"] == "NotChecked"
    assert third["error"] == "it is not an object; set apiVersion and kind"
    assert any("need a cluster" in each for each in output["notChecked"])


# --- what can't be looked at


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("a: [\n", "line 8: did not find"),
        ("[1]\n", "it is not an object"),
        ({"kind": "Project"}, "it is not an object"),
        ({**project(), "kind": "Planet"}, f'no matches for kind "Planet" in version "{CORE}"'),
        ({**project(), "apiVersion": "core.gardener.cloud/v9"}, 'in version "core.gardener.cloud/v9"'),
    ],
)
def test_what_cannot_be_checked_differs_from_what_is_wrong(
    manifest: Path, capsys: Any, document: Object | str, text: str
) -> None:
    assert run(manifest, project("much-too-long"), document) == 2
    output = capsys.readouterr().out
    assert f"{manifest}:2: Error: " in output
    assert text in output
    assert "is invalid" in output


def test_a_file_that_is_not_there_is_reported(tmp_path: Path, capsys: Any) -> None:
    assert main(["validate", str(tmp_path / "gone.yaml")]) == 2
    assert "cannot read it: No such file or directory" in capsys.readouterr().out


def test_of_a_directory_the_files_are_looked_at_that_kubectl_would_apply(tmp_path: Path, capsys: Any) -> None:
    for name in ("b.yaml", "a.json", "c.yml"):
        (tmp_path / name).write_text(json.dumps(project()))
    (tmp_path / "notes.txt").write_text("a: [")
    assert main(["validate", str(tmp_path)]) == 0
    output = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in output] == [
        str(tmp_path / name) for name in ("a.json", "b.yaml", "c.yml")
    ]


def test_a_directory_without_manifests_is_not_fine(tmp_path: Path, capsys: Any) -> None:
    assert main(["validate", str(tmp_path)]) == 2
    assert "the input has no documents" in capsys.readouterr().err


@pytest.mark.parametrize("documents", [(), (SECRET,)])
def test_nothing_to_look_at_is_not_fine(manifest: Path, documents: tuple[Object, ...]) -> None:
    assert run(manifest, *documents) == 2


def given_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_is_read(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given_input(monkeypatch, json.dumps(project()).encode())
    assert main(["validate", "-"]) == 0
    assert 'standard input:1: Project "dev" is fine\n' in capsys.readouterr().out


def test_what_is_read_is_bounded(manifest: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given_input(monkeypatch, b"#" * (LARGEST_FILE + 1))
    manifest.write_bytes(b"#" * (LARGEST_FILE + 1))
    assert main(["validate", "-", str(manifest)]) == 2
    assert capsys.readouterr().out.count(f"it is larger than {LARGEST_FILE} bytes") == 2


# --- whatever it is


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
FIELDS = st.sampled_from(("metadata", "spec", "status", "provider", "members", "helm", "quotas", "handler"))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(DEFINITIONS), st.dictionaries(FIELDS, ANYTHING, max_size=4))
def test_there_is_an_answer_about_any_object(definition: Any, fields: Object) -> None:
    of = definition.resource
    report({**fields, **of.type_meta})


def test_a_kind_of_another_api_is_not_served() -> None:
    with pytest.raises(NotServed):
        report(SECRET)
