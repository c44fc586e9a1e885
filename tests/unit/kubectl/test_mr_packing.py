"""Manifests into Secrets and out of them."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kube.objects import Object
from kubectl.errors import UserError
from kubectl.mr.files import Text, demand_applicable, objects_in
from kubectl.mr.packing import documents_in, managed_resource, pack, protected, secrets


def config_map(name: str, value: str = "x") -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {value}}}\n".encode()


def objects_of(made: list[Object]) -> list[str]:
    return [item.object["metadata"]["name"] for item in decode_secrets([data_of(secret) for secret in made]).objects]


@given(st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=8), st.integers(60, 400))
def test_whatever_is_packed_comes_out_again_in_order(names: list[str], limit: int) -> None:
    documents = [config_map(name, base64.b32encode(os.urandom(20)).decode().lower()) for name in names]
    try:
        packed = pack(documents, limit=limit)
    except UserError:
        assert limit < 150
        return
    assert all(len(part.value) <= limit for part in packed)
    assert objects_of(secrets("shop", "garden", packed, immutable=False)) == names


def test_documents_keep_their_comments_and_empty_ones_are_left_out() -> None:
    text = b"# first\n---\n# about one\n" + config_map("one") + b"---\n# nothing\n---\n" + config_map("two")
    documents = documents_in([Text("a.yaml", text)])
    assert documents == [b"# about one\n" + config_map("one"), config_map("two")]


def test_a_separator_in_the_first_line_is_no_document() -> None:
    assert documents_in([Text("a.yaml", b"---\n" + config_map("one"))]) == [config_map("one")]


def test_a_stream_of_json_stays_together() -> None:
    stream = b'{"apiVersion": "v1", "kind": "A"}\n{"apiVersion": "v1", "kind": "B"}'
    [document] = documents_in([Text("a.json", stream)])
    assert document == stream + b"\n"


def test_several_secrets_have_numbers_and_one_has_none() -> None:
    documents = [config_map(f"n{i}", base64.b32encode(os.urandom(50)).decode().lower()) for i in range(4)]
    one = secrets("shop", "garden", pack(documents), immutable=False)
    several = secrets("shop", "garden", pack(documents, limit=200), immutable=False)
    assert [secret["metadata"]["name"] for secret in one] == ["shop"]
    assert [secret["metadata"]["name"] for secret in several[:2]] == ["shop-1", "shop-2"]


def test_immutable_secrets_are_named_after_their_content_and_protected() -> None:
    first, second = (
        secrets("shop", "garden", pack([config_map("one", value)]), immutable=True)[0] for value in ("x", "y")
    )
    assert first["immutable"] is True
    assert first["metadata"]["name"].startswith("shop-")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    managed = managed_resource("shop", "garden", [first], resource_class="", keep_objects=False)
    annotations = protected(managed, [first])["metadata"]["annotations"]
    assert list(annotations.values()) == [first["metadata"]["name"]]


def test_a_document_that_does_not_fit_is_named() -> None:
    with pytest.raises(UserError, match="one document has .* but a Secret holds 50"):
        pack([config_map("one", base64.b32encode(os.urandom(100)).decode())], limit=50)


def test_all_documents_that_cannot_be_read_are_named() -> None:
    with pytest.raises(UserError) as raised:
        objects_in([Text("a.yaml", b"a: [\n---\n" + config_map("one")), Text("b.yaml", b"- 1\n")])
    assert "a.yaml: index 0" in str(raised.value)
    assert "b.yaml: index 0: the document is a list" in str(raised.value)


def test_what_no_agent_can_apply_is_found_before() -> None:
    with pytest.raises(UserError, match="generateName is not supported"):
        demand_applicable([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}])
