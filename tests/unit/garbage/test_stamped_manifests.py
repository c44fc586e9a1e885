"""ConfigMaps and Secrets that are named after their content, and what names them."""

import base64
import copy
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.references.__main__ import main
from agent.references.keys import GARBAGE_COLLECTABLE, annotation_key
from agent.references.manifests import stamp
from agent.references.unique import content_hash, make_unique

Object = dict[str, Any]


def config_map(name: str = "c", *, namespace: str = "", **fields: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v"}, **fields}


def secret(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


def deployment(*config_maps: str, namespace: str = "") -> Object:
    sources = [{"configMapRef": {"name": name}} for name in config_maps]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", **({"namespace": namespace} if namespace else {})},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "envFrom": sources}]}}},
    }


def test_a_unique_object_is_immutable_labelled_and_named_after_its_content() -> None:
    obj = config_map()
    obj["metadata"]["labels"] = {"app": "a"}
    before = copy.deepcopy(obj)
    unique = make_unique(obj)
    assert unique["metadata"] == {
        "name": f"c-{content_hash(obj)}",
        "labels": {"app": "a", GARBAGE_COLLECTABLE: "true"},
    }
    assert unique["immutable"] is True
    assert unique["data"] == obj["data"]
    assert obj == before


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


@pytest.mark.parametrize("obj", [deployment(), {"apiVersion": "example.com/v1", "kind": "Secret", "metadata": {}}])
def test_other_kinds_are_not_named_after_their_content(obj: Object) -> None:
    with pytest.raises(ValueError, match="unhandled object type"):
        make_unique(obj)


def test_without_a_name_there_is_nothing_to_begin_with() -> None:
    with pytest.raises(ValueError, match=r"a ConfigMap without metadata\.name"):
        make_unique({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}})


def test_what_names_a_config_map_follows_it_and_protects_it() -> None:
    stamped = stamp([deployment("c", "elsewhere"), config_map()])
    name = make_unique(config_map())["metadata"]["name"]
    assert stamped[1]["metadata"]["name"] == name
    template = stamped[0]["spec"]["template"]
    assert [source["configMapRef"]["name"] for source in template["spec"]["containers"][0]["envFrom"]] == [
        name,
        "elsewhere",
    ]
    wanted = {annotation_key("configmap", each): each for each in (name, "elsewhere")}
    assert template["metadata"]["annotations"] == stamped[0]["metadata"]["annotations"] == wanted


@pytest.mark.parametrize(
    "obj",
    [
        config_map(immutable=False),
        config_map(immutable=True),
        config_map("nobody-names-it"),
        config_map(namespace="other"),
        secret() | {"metadata": {"name": "c"}},
    ],
)
def test_it_keeps_its_name_if_its_author_says_so_or_nothing_names_it(obj: Object) -> None:
    stamped = stamp([obj, deployment("c")])
    assert stamped[0] == obj
    assert stamped[1]["metadata"]["annotations"] == {annotation_key("configmap", "c"): "c"}


def test_doing_it_twice_changes_nothing() -> None:
    once = stamp([config_map(), deployment("c"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}])
    assert stamp(once) == once


def test_the_items_of_a_list_come_one_by_one() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [deployment("c")]}
    listed = [{"apiVersion": "v1", "kind": "List", "items": [config_map(), inner]}]
    assert stamp(listed) == stamp([config_map(), deployment("c")])


def test_a_name_that_two_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="ConfigMap a/c is there twice"):
        stamp([config_map(namespace="a"), config_map(namespace="a", data={}), deployment("c", namespace="a")])


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
        ("apiVersion: v1\nkind: Pod\n---\njust text\n", "the document in line 4 is no manifest"),
        ("apiVersion: v1\nkind: Pod\nmetadata: none\n", "the document in line 1 is no manifest"),
        ("kind: Pod\n", "is no manifest"),
    ],
)
def test_input_that_is_no_manifest_is_explained(text: str, expected: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    assert main([str(file)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"error: {file}: ")
    assert expected in told.err


def test_a_file_that_does_not_exist_is_named(capsys: Any) -> None:
    assert main(["/does/not/exist"]) == 1
    assert capsys.readouterr().err == "error: /does/not/exist: No such file or directory\n"


def test_binary_content_counts_as_it_is_stored() -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    assert content_hash(config_map(data={}, binaryData={"a": encoded})) == content_hash(secret(data={"a": encoded}))
