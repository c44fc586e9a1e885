"""Whatever a Secret holds: it is reported clearly, nothing is deleted, others are not disturbed, and memory is bounded."""

import functools
from collections.abc import Callable, Iterator, Mapping

import brotli
import orjson
import pytest

from attacks.decoding import SORTS, secret_data
from devcluster.cluster import Cluster
from kit.objects import config_map, obj, secret
from kit.processes.agent import AgentProcess
from kit.rig import Agent, Rig, resident_peak_bytes
from kube.objects import Object

_MIB = 2**20
_MOST_MEMORY = 400 * _MIB
"""Far more than usual; without limits each of the worst inputs would take many times that."""


@pytest.fixture(scope="module")
def fresh_agent(own_agent: Agent, cluster: Cluster) -> Agent:
    return Agent(cluster, resource_class=f"{own_agent.resource_class}-bad")


@pytest.fixture(scope="module")
def fresh_process(fresh_agent: Agent) -> Iterator[AgentProcess]:
    """A process of its own, so that its peak of memory shows these tests alone."""
    with fresh_agent.start() as process:
        yield process


@pytest.fixture
def rig(cluster: Cluster, namespace: str, fresh_agent: Agent, fresh_process: AgentProcess) -> Rig:
    return Rig(cluster, namespace, fresh_agent, fresh_process)


def yaml_of(rig: Rig, *objects: Object) -> bytes:
    return b"".join(b"---\n" + orjson.dumps(rig.placed(obj)) + b"\n" for obj in objects)


@functools.cache
def brotli_of_zeros(mebibytes: int) -> bytes:
    compressor = brotli.Compressor(quality=5)
    zeros = bytes(_MIB)
    return b"".join([*(compressor.process(zeros) for _ in range(mebibytes)), compressor.finish()])


def alias_bomb() -> bytes:
    levels = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    levels += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: bomb}", *levels]).encode()


def deep(opening: str, closing: str) -> bytes:
    return ("kind: " + opening * 10_000 + closing * 10_000).encode()


UNDECODABLE: dict[str, tuple[str, bytes, str]] = {
    "broken YAML": ("b.yaml", b"kind: ConfigMap\nmetadata: {name: x", "line "),
    "a tab": ("b.yaml", b"kind: ConfigMap\nmetadata:\n\tname: x", "line "),
    "a list": ("b.yaml", b"- kind: ConfigMap", "the document is a list"),
    "no text": ("b.yaml", bytes(range(256)), ""),
    "broken JSON": ("b.json", b'{"kind": "ConfigMap", ', "invalid JSON"),
    "broken Brotli": ("b.yaml.br", b"this is no Brotli", "the value is not a Brotli stream"),
    "truncated Brotli": ("b.yaml.br", brotli.compress(b"kind: ConfigMap" * 100)[:-4], "truncated"),
    "a Brotli bomb": ("b.yaml.br", b"", "have more than 33554432 bytes"),
    "an alias bomb": ("b.yaml", alias_bomb(), "too many values"),
    "10 MB of values": (
        "b.yaml.br",
        brotli.compress(b"kind: [" + b"a," * (5 * _MIB) + b"]", quality=5),
        "the document is larger than 4194304 bytes",
    ),
    "3 MB of values": (
        "b.yaml.br",
        brotli.compress(b"kind: [" + b"a," * (3 * _MIB // 2) + b"]", quality=5),
        "more than 150000 values in one document",
    ),
    "10 MB of documents": (
        "b.yaml.br",
        brotli.compress(b"---\n# no object\n" * (10 * _MIB // 16), quality=5),
        "more than",
    ),
    "a deep flow": ("b.yaml", deep("[", "]"), "nested deeper than"),
    "a deep mapping": ("b.yaml", deep("{a: ", "}"), "nested deeper than"),
    "a deep block": ("b.yaml.br", brotli.compress(b"".join(b"- " for _ in range(10_000)) + b"x"), "nested deeper than"),
    "deep JSON": ("b.json", b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
    "an endless anchor": ("b.yaml", b"kind: &a [*a]", ""),
    "a number as name": (
        "b.yaml",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}",
        "metadata.name is a number",
    ),
}


@pytest.mark.parametrize("case", UNDECODABLE)
def test_what_cannot_be_decoded_is_reported_and_deletes_nothing(case: str, rig: Rig) -> None:
    key, content, text = UNDECODABLE[case]
    content = content or brotli_of_zeros(1024)
    rig.write("other", config_map("other", {"k": "1"}))
    rig.write_data(
        "mr", {"a.yaml": yaml_of(rig, config_map("sibling", {"k": "1"})), key[:6]: yaml_of(rig, config_map("former"))}
    )
    rig.write_managed_resource("mr")
    rig.until_applied("mr")
    former = rig.get("ConfigMap", "former")

    rig.write_data("mr", {"a.yaml": yaml_of(rig, config_map("sibling", {"k": "2"})), key: content})
    rig.write_secret("other", config_map("other", {"k": "2"}))
    rig.until_data("other", {"k": "2"})
    message = rig.until_failed("mr", text, f"in '{key}' in secret '{rig.namespace}/mr'", reason="DecodingFailed")
    assert message.startswith("Could not decode all new resources: [Could not decode resource at index ")
    assert len(message) < 20_000
    rig.until_data("sibling", {"k": "2"})
    assert rig.get("ConfigMap", "former") == former
    assert rig.listed("mr") == {"former", "sibling"}
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "DecodingFailed"
    assert event["message"].startswith("Could not decode all new resources: ")
    assert resident_peak_bytes(rig.process) < _MOST_MEMORY

    # Once it can be read again, what it does not hold any more goes.
    rig.write_data("mr", {"a.yaml": yaml_of(rig, config_map("sibling", {"k": "3"}))})
    rig.until_applied("mr")
    rig.until_gone("ConfigMap", "former")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "sibling") is None


def many_objects(count: int) -> list[Object]:
    return [obj(f"example.com/v1 Kind{n}", "x") for n in range(count)]


UNAPPLICABLE: dict[str, tuple[Callable[[], list[Object]], str]] = {
    "an unknown kind": (lambda: many_objects(1), 'no matches for kind "Kind0" in version "example.com/v1"'),
    "many unknown kinds": (lambda: many_objects(300), "300 errors occurred"),
    "very many objects": (lambda: many_objects(5_000), "5000 errors occurred"),
    "no kind": (lambda: [{"apiVersion": "v1", "metadata": {"name": "x"}}], "the manifest has no kind"),
    "not a valid apiVersion": (
        lambda: [{"kind": "ConfigMap", "metadata": {"name": "x"}}],
        "the manifest has no apiVersion",
    ),
    "no name": (lambda: [{"apiVersion": "v1", "kind": "ConfigMap"}], "metadata.name: Required value"),
    "a name to be made": (lambda: [config_map(generateName="x-")], "metadata.generateName is not supported"),
    "a name with a path": (lambda: [{**config_map("x"), "metadata": {"name": "../../secrets/x"}}], "is invalid"),
    "data of a wrong type": (lambda: [config_map("x", data={"k": 1})], "cannot unmarshal number"),
    "too much data": (lambda: [config_map("x", {"k": "x" * 3 * _MIB})], "API servers accept at most 3145728"),
}


@pytest.mark.parametrize("case", UNAPPLICABLE)
def test_what_cannot_be_applied_is_reported_and_stops_nothing_else(case: str, rig: Rig) -> None:
    objects, text = UNAPPLICABLE[case]
    rig.write("other", config_map("other", {"k": "1"}))
    rig.apply("mr", config_map("sibling", {"k": "1"}))
    documents = yaml_of(rig, config_map("sibling", {"k": "2"}), *objects())
    rig.write_data("mr", {"objects.yaml.br": brotli.compress(documents, quality=5)})
    rig.write_secret("other", config_map("other", {"k": "2"}))
    rig.until_data("other", {"k": "2"})
    message = rig.until_failed("mr", text)
    assert len(message) < 20_000
    rig.until_data("sibling", {"k": "2"})
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "ApplyFailed"
    assert len(event["message"]) <= 1024
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "sibling") is None
    assert resident_peak_bytes(rig.process) < _MOST_MEMORY


def test_secrets_of_some_hundred_bytes_do_not_fill_memory_or_keep_others_waiting(rig: Rig) -> None:
    attackers = {f"attacker-{number}": sort for number, sort in enumerate(SORTS)}
    for name, sort in attackers.items():
        rig.put(secret(name, data=secret_data(sort)))
        rig.write_managed_resource(name)
    rig.apply("innocent", config_map("harmless", {"k": "1"}))
    for name in attackers:
        rig.until(lambda name=name: rig.applied(name)[0] == "False", f"{name} to fail")  # type: ignore[misc]
        rig.delete("ManagedResource", name)
    for name in attackers:
        rig.until_gone("ManagedResource", name)
    assert rig.process.process.poll() is None
    assert resident_peak_bytes(rig.process) < _MOST_MEMORY


@pytest.mark.parametrize("data", [{}, {"a.yaml": b""}, {"a.yaml": b"---\n# nothing\n---\nnull\n"}], ids=str)
def test_a_secret_without_objects_is_no_failure(data: Mapping[str, bytes], rig: Rig) -> None:
    rig.write_data("mr", data)
    rig.write_managed_resource("mr")
    rig.until_applied("mr")
    assert rig.listed("mr") == set()


def test_a_missing_secret_is_reported_and_deletes_nothing(rig: Rig) -> None:
    rig.apply("mr", config_map("c"))
    before = rig.get("ConfigMap", "c")
    rig.delete("Secret", "mr")
    message = rig.until_failed("mr", reason="CannotReadSecret")
    assert message == 'Secret "mr" not found'
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "CannotReadSecret"
    assert rig.get("ConfigMap", "c") == before
    rig.write_secret("mr", config_map("c", {"k": "2"}))
    rig.until_data("c", {"k": "2"})
    rig.until_applied("mr")
