"""ConfigMaps and Secrets that are named after their content, and what names them."""

import base64
import copy
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.references import main
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import annotation_key, content_hash, make_unique, stamp
from kit import objects
from kit.objects import obj, secret
from kube.objects import Object


def config_map(name: str = "c", **fields: Any) -> Object:
    return objects.config_map(name, **{"data": {"k": "v"}, **fields})


def deployment(*config_maps: str, name: str = "d") -> Object:
    sources = [{"configMapRef": {"name": name}} for name in config_maps]
    spec = {"template": {"spec": {"containers": [{"name": "c", "envFrom": sources}]}}}
    return obj("apps/v1 Deployment", name, spec=spec)


def test_a_unique_object_is_immutable_labelled_and_named_after_its_content() -> None:
    given = config_map(labels={"app": "a"})
    before = copy.deepcopy(given)
    labels = {"app": "a", GARBAGE_COLLECTABLE: "true"}
    assert make_unique(given) == config_map(f"c-{content_hash(given)}", labels=labels, immutable=True)
    assert given == before


@pytest.mark.parametrize(
    ("first", "second", "are_equal"),
    [
        (config_map(data={"a": "1", "b": "2"}), config_map(data={"b": "2", "a": "1"}), True),
        (config_map(data={"a": "1"}), config_map("other", data={"a": "1"}), True),
        (config_map(data={"a": "1"}), config_map(data={"a": "2"}), False),
        (config_map(data={"a": "1"}), config_map(data={"b": "1"}), False),
        (config_map(data=None), config_map(data={}), True),
        (config_map(data={"a": "ü"}), config_map(data=None, binaryData={"a": "w7w="}), True),
        (secret(data={"a": "MQ=="}), secret(stringData={"a": "1"}), True),
        (secret(data={"a": "MQ==", "b": "Mg=="}), secret(data={"a": "MQ==", "b": ""}, stringData={"b": "2"}), True),
        (secret(data={"a": "MQ=="}), secret(data={"a": "Mg=="}), False),
    ],
)
def test_equal_content_has_equal_hashes(first: Object, second: Object, are_equal: bool) -> None:
    assert (content_hash(first) == content_hash(second)) is are_equal
    assert len(content_hash(first)) == 8


@pytest.mark.parametrize("other", [deployment(), obj("example.com/v1 Secret")])
def test_other_kinds_are_not_named_after_their_content(other: Object) -> None:
    with pytest.raises(ValueError, match="unhandled object type"):
        make_unique(other)


def test_without_a_name_there_is_nothing_to_begin_with() -> None:
    with pytest.raises(ValueError, match=r"a ConfigMap without metadata\.name"):
        make_unique(config_map("", generateName="a-"))


def test_what_names_a_config_map_follows_it_and_protects_it() -> None:
    stamped = stamp([deployment("c", "elsewhere"), config_map()])
    name = make_unique(config_map())["metadata"]["name"]
    assert stamped[1]["metadata"]["name"] == name
    template = stamped[0]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert [source["configMapRef"]["name"] for source in container["envFrom"]] == [name, "elsewhere"]
    wanted = {annotation_key("configmap", each): each for each in (name, "elsewhere")}
    assert template["metadata"]["annotations"] == stamped[0]["metadata"]["annotations"] == wanted


@pytest.mark.parametrize(
    "named",
    [
        *(config_map(immutable=False), config_map(immutable=True)),
        *(config_map("unnamed"), config_map("other/c"), secret("c")),
    ],
)
def test_it_keeps_its_name_if_its_author_demands_it_or_nothing_names_it(named: Object) -> None:
    stamped = stamp([named, deployment("c")])
    assert stamped[0] == named
    assert stamped[1]["metadata"]["annotations"] == {annotation_key("configmap", "c"): "c"}


def test_doing_it_twice_changes_nothing() -> None:
    once = stamp([config_map(), deployment("c"), obj("v1 Namespace", "n")])
    assert stamp(once) == once


def test_the_items_of_a_list_come_one_by_one() -> None:
    inner = obj("v1 List", items=[deployment("c")])
    assert stamp([obj("v1 List", items=[config_map(), inner])]) == stamp([config_map(), deployment("c")])


def test_a_name_that_two_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="ConfigMap a/c occurs twice"):
        stamp([config_map("a/c"), config_map("a/c", data={}), deployment("c", name="a/d")])


# --- the command

MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data:
  octal: "0644"
  exponent: "1e3"
  truth: "y"
  empty: ""
  time: "12:30"
  lines: |
    one
    two: "2"
---
# nothing
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - name: c
    envFrom:
    - configMapRef:
        name: c
"""


def test_the_command_writes_yaml_that_reads_the_same_everywhere(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(MANIFESTS)
    assert main([str(file)]) == 0
    written = capsys.readouterr().out
    for text in ('"0644"', '"1e3"', '"y"', "'12:30'", "lines: |"):
        assert text in written
    made, pod = yaml.safe_load_all(written)
    assert made["data"] == next(yaml.safe_load_all(MANIFESTS))["data"]
    name = made["metadata"]["name"]
    assert name.startswith("c-")
    assert pod["metadata"]["annotations"] == {annotation_key("configmap", name): name}


def test_the_command_reads_standard_input_as_well_and_keeps_files_together(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = MANIFESTS.split("---\n# nothing\n---\n")
    file = tmp_path / "pod.yaml"
    file.write_text(other)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(one.encode())))
    assert main([str(file), "-"]) == 0
    pod, made = yaml.safe_load_all(capsys.readouterr().out)
    assert made["metadata"]["name"] in pod["metadata"]["annotations"].values()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "line 1"),
        ("apiVersion: v1\nkind: Pod\n---\njust text\n", "the document in line 4 lacks apiVersion"),
        ("apiVersion: v1\nkind: Pod\nmetadata: none\n", "the document in line 1 lacks apiVersion"),
        ("kind: Pod\n", "lacks apiVersion"),
    ],
)
def test_input_that_is_no_manifest_is_explained(text: str, expected: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    assert main([str(file)]) == 1
    reported = capsys.readouterr()
    assert reported.out == ""
    assert reported.err.startswith(f"error: {file}: ")
    assert expected in reported.err


def test_a_file_that_does_not_exist_is_named(capsys: Any) -> None:
    assert main(["/does/not/exist"]) == 1
    assert capsys.readouterr().err == "error: /does/not/exist: No such file or directory\n"


def test_binary_content_counts_as_it_is_stored() -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    assert content_hash(config_map(data={}, binaryData={"a": encoded})) == content_hash(secret(data={"a": encoded}))
