"""Bundles of manifests for tests: hundreds of objects of more than forty kinds, written as people write them.

    bundle = generate(prefix="test-1a2b", seed=7, count=300)
    bundle.objects                              what is meant
    bundle.text                                 YAML with comments, anchors, odd quoting, empty documents
    split_into_secrets(bundle.text, limit=...)  Brotli streams, one for each Secret

The same arguments always give the same bundle. The order of its documents is random, as it is in a directory.
"""

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import brotli
import yaml

from kit.bundles.kinds import DEFINITIONS, KINDS, LIMITS, NAMESPACE, OWN_GROUP, Kind, Octal, World
from kube.objects import Object

SECRET_LIMIT = 2**20
"""Bytes that the values of a Secret may have in total."""


@dataclass(frozen=True, slots=True)
class Bundle:
    objects: list[Object]
    text: str
    paths: list[str]
    """Where the API server has each of the objects."""


def generate(*, prefix: str, seed: int, count: int) -> Bundle:
    """One object of every kind at least, and so many in total if that is more.

    All that is not in a namespace of the bundle has a name that begins with the prefix.
    """
    world = World(prefix, random.Random(seed))
    made = list(_objects(world, count))
    world.random.shuffle(made)
    objects = [obj for obj, _ in made]
    return Bundle(objects, write(objects, world.random), [_path(obj, kind) for obj, kind in made])


def split_into_secrets(text: str, limit: int = SECRET_LIMIT) -> list[bytes]:
    """Brotli streams of whole documents, none longer than the limit.

    Raises:
        ValueError: a single document is too long.
    """
    return list(_split(text.split(_SEPARATOR), limit))


_SEPARATOR = "\n---\n"


def _split(documents: Sequence[str], limit: int) -> Iterator[bytes]:
    compressed = brotli.compress(_SEPARATOR.join(documents).encode(), quality=9)
    if len(compressed) <= limit:
        yield compressed
    elif len(documents) == 1:
        raise ValueError(f"a document has {len(compressed)} bytes, but the limit is {limit}")
    else:
        middle = len(documents) // 2
        yield from _split(documents[:middle], limit)
        yield from _split(documents[middle:], limit)


# --- objects


def _objects(world: World, count: int) -> Iterator[tuple[Object, Kind]]:
    first = [
        *((NAMESPACE, name, None) for name in (*world.namespaces, world.limited)),
        *((kind, kind.name.lower(), world.limited) for kind in LIMITS),
        *((kind, "", None) for kind in DEFINITIONS),
    ]
    for kind, name, namespace in first:
        yield _complete(world, kind, name, namespace), kind
    for number, kind in enumerate(_chosen(world, count - len(first))):
        yield _numbered(world, kind, number // len(KINDS) if number < len(KINDS) else number), kind


def _chosen(world: World, count: int) -> Iterator[Kind]:
    yield from KINDS
    light = [kind for kind in KINDS if kind.is_light]
    for _ in range(count - len(KINDS)):
        yield world.random.choice(light)


def _numbered(world: World, kind: Kind, number: int) -> Object:
    if kind.namespaced:
        return _complete(world, kind, f"{kind.name.lower()}-{number}", world.random.choice(world.namespaces))
    return _complete(world, kind, f"{world.prefix}-{kind.name.lower()}-{number}", None)


def _complete(world: World, kind: Kind, name: str, namespace: str | None) -> Object:
    fields = kind.make(world, name)
    metadata: Object = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if world.random.random() < 0.2:
        metadata["annotations"] = {"example.com/note": f"see {world.word()}: #{world.random.randrange(99)}"}
    if world.random.random() < 0.2:
        metadata["creationTimestamp"] = None
    api_version = kind.api_version.replace(OWN_GROUP, f"{world.group}/v1")
    return {
        "apiVersion": api_version,
        "kind": kind.name,
        **fields,
        "metadata": {**metadata, **fields.get("metadata", {})},
    }


def _path(obj: Object, kind: Kind) -> str:
    api_version, metadata = obj["apiVersion"], obj["metadata"]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{kind.plural}/{metadata['name']}"


# --- text


def write(objects: Sequence[Object], rng: random.Random) -> str:
    """The objects as YAML, each in a style of its own."""
    documents = ["# Made by hand, over the years.\n\n"]
    for obj in objects:
        if rng.random() < 0.05:
            documents.append(rng.choice(("# nothing here\n", "\n", "  \n# kept for later:\n#   kind: ConfigMap\n")))
        documents.append(_document(obj, rng))
    return "---\n".join(documents)


def _document(obj: Object, rng: random.Random) -> str:
    class Dumper(_PeopleDumper):
        random = rng

    indent = rng.choice((2, 2, 2, 4))
    text = yaml.dump(
        obj,
        Dumper=Dumper,
        allow_unicode=rng.random() < 0.5,
        default_flow_style=rng.choice((False, False, None)),  # None: mappings without children in one line
        indent=indent,
        sort_keys=rng.random() < 0.5,
        width=rng.choice((60, 120, 10_000)),
    )
    text = _with_comments(text, rng)
    # A user uses Windows.
    return text.replace("\n", "\r\n") if rng.random() < 0.03 else text


def _with_comments(text: str, rng: random.Random) -> str:
    """Only fields of the uppermost level begin in the first column; before those a comment is always possible."""
    out = io.StringIO()
    for line in text.splitlines(keepends=True):
        if line[0].isalpha() and rng.random() < 0.15:
            out.write(rng.choice(("# TODO: why?\n", "# --- do not change: it's 'needed' ---\n", "\n", "#\n")))
        is_remarkable = line.startswith("kind: ") and rng.random() < 0.2
        out.write(f"{line.rstrip()} # {{{{ .Values.kind }}}}\n" if is_remarkable else line)
    return out.getvalue()


class _PeopleDumper(yaml.SafeDumper):
    """Quotes where it has to, and elsewhere as it pleases; mappings that occur twice get an anchor."""

    random: random.Random

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Lists of lists of mappings are indented by some and not by others.
        super().increase_indent(flow, indentless and self.random.random() < 0.5)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        for name, _ in node.value:
            if self.random.random() < 0.97:  # few authors quote the names of fields
                name.style = None
        return node

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, dict) or not data


def _string(dumper: _PeopleDumper, text: str) -> yaml.ScalarNode:
    """Go reads some strings without quotes as something else, that PyYAML leaves as they are: they are quoted."""
    styles = [None, None, None, "'", '"'] if text.replace("-", "").replace("/", "").isalpha() else ["'", '"']
    if text in {"y", "n", "Y", "N"}:
        styles = ["'", '"']
    if "\n" in text:
        styles = ["|", '"']
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=dumper.random.choice(styles))


def _boolean(dumper: _PeopleDumper, value: bool) -> yaml.ScalarNode:
    words = ("true", "true", "True", "yes", "on") if value else ("false", "false", "False", "no", "off")
    return dumper.represent_scalar("tag:yaml.org,2002:bool", dumper.random.choice(words))


def _null(dumper: _PeopleDumper, value: None) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:null", dumper.random.choice(("null", "~", "Null")))


def _octal(dumper: _PeopleDumper, value: Octal) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:int", f"0{value:o}")


_PeopleDumper.add_representer(str, _string)
_PeopleDumper.add_representer(bool, _boolean)
_PeopleDumper.add_representer(type(None), _null)
_PeopleDumper.add_representer(Octal, _octal)
