"""The bundles that tests apply: what they consist of, and that the agent reads in them what is meant."""

import random

import pytest

from gardener.managed_resource.decode import decode_secrets
from kit.bundles.bundle import generate, split_into_secrets, write
from kube.objects import Key, Object


def read(streams: list[bytes]) -> list[Object]:
    secrets = [(Key("ns", f"part-{number}"), {"objects.yaml.br": data}) for number, data in enumerate(streams)]
    result = decode_secrets(secrets)
    assert result.errors == []
    return [decoded.object for decoded in result.objects]


def test_the_same_arguments_give_the_same_bundle() -> None:
    assert generate(prefix="test", seed=3, count=100) == generate(prefix="test", seed=3, count=100)
    assert generate(prefix="test", seed=3, count=100).text != generate(prefix="test", seed=4, count=100).text


def test_a_bundle_has_the_number_of_objects_and_all_kinds() -> None:
    bundle = generate(prefix="test", seed=1, count=300)
    assert len(bundle.objects) == len(set(bundle.paths)) == 300
    assert len({obj["kind"] for obj in bundle.objects}) >= 40


def test_whatever_is_in_no_namespace_of_the_bundle_has_its_prefix() -> None:
    for obj in generate(prefix="test", seed=1, count=300).objects:
        scope = obj["metadata"].get("namespace") or obj["metadata"]["name"]
        assert scope.startswith("test") or scope.endswith(".test.example.com")


@pytest.mark.parametrize("seed", range(10))
def test_the_agent_reads_what_is_meant(seed: int) -> None:
    bundle = generate(prefix="test", seed=seed, count=150)
    assert read(split_into_secrets(bundle.text)) == bundle.objects


def test_the_text_is_written_as_people_write() -> None:
    text = generate(prefix="test", seed=1, count=300).text
    for sign in ("# TODO", "&id001", "*id001", ": yes", "0644", "\r\n", "|", "~", "creationTimestamp: "):
        assert sign in text, sign


def test_a_text_that_is_too_long_becomes_several_secrets() -> None:
    bundle = generate(prefix="test", seed=1, count=200)
    streams = split_into_secrets(bundle.text, limit=4096)
    assert len(streams) > 1
    assert all(len(stream) <= 4096 for stream in streams)
    assert read(streams) == bundle.objects


def test_a_document_that_fits_into_no_secret_is_an_error() -> None:
    rng = random.Random(1)
    text = write([{"apiVersion": "v1", "kind": "ConfigMap", "data": {"noise": rng.randbytes(9000).hex()}}], rng)
    with pytest.raises(ValueError, match=r"a document has 9[0-9]+ bytes, but the limit is 4096"):
        split_into_secrets(text, limit=4096)
