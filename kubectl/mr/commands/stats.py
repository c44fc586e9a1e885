"""`kubectl mr stats`: numbers, kinds and sizes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import click

from gardener.managed_resource.decode import COMPRESSED_SUFFIX, decompress
from gardener.managed_resource.references import listed_in, secret_names
from gardener.overview.states import ResourceState, state_of
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, key
from kube.resources import SECRETS
from kube.yaml import DialectError
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.desired import values_of
from kubectl.mr.managed_resources import state_word
from kubectl.output import Form
from kubectl.session import Session, gathered, on_cluster
from kubectl.style import BOLD, Line, Word, size, table

_AT_ONCE = 8
_LONGEST = 64 << 20
_KINDS_SHOWN = 10


@click.command
@parameters.all_namespaces("all_namespaces")
@options.form
@on_cluster(target=False)
async def command(session: Session, *, all_namespaces: bool, form: Form | None) -> None:
    """Reads each Secret once to measure its size."""
    found = await _count(session, "" if all_namespaces else session.namespace)
    if form is not None:
        output.show_data(data(found), form)
    else:
        output.show(lines(found))


@dataclass(slots=True)
class Counts:
    states: Counter[ResourceState] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    secrets: int = 0
    unreadable: int = 0
    stored_bytes: int = 0
    content_bytes: int = 0
    largest: tuple[int, str] = (0, "")


async def _count(session: Session, namespace: str) -> Counts:
    counts = Counts()
    measured: set[Key] = set()
    async for page in managed_resources.pages(session, namespace):
        wanted: set[Key] = set()
        for item in page:
            counts.states[state_of(item)] += 1
            for reference in listed_in(item):
                counts.kinds[reference.get("kind") or ""] += 1
            wanted |= {Key(key(item).namespace, name) for name in secret_names(item)}
        await _measure(session, wanted - measured, counts)
        measured |= wanted
    return counts


async def _measure(session: Session, wanted: set[Key], counts: Counts) -> None:
    async def one(name: Key) -> None:
        try:
            add_secret(counts, await session.source.client.get(SECRETS, name))
        except (NotFound, Forbidden):
            counts.unreadable += 1

    await gathered(one, sorted(wanted), at_once=_AT_ONCE)


def add_secret(counts: Counts, secret: Object) -> None:
    data = values_of(secret)
    stored = sum(map(len, data.values()))
    counts.secrets += 1
    counts.stored_bytes += stored
    counts.largest = max(counts.largest, (stored, str(key(secret))))
    for data_key, value in data.items():
        try:
            unfolded = decompress(value, limit=_LONGEST) if data_key.endswith(COMPRESSED_SUFFIX) else value
        except DialectError:
            unfolded = value
        counts.content_bytes += len(unfolded)


def lines(counts: Counts) -> Iterator[Line]:
    total = sum(counts.states.values())
    yield [Word(f"ManagedResources: {total}", BOLD)]
    yield from _counted([(state_word(state), count) for state, count in sorted(counts.states.items())])
    yield [Word(f"Objects: {sum(counts.kinds.values())}", BOLD)]
    kinds = sorted(counts.kinds.items(), key=lambda item: (-item[1], item[0]))
    yield from _counted(list(kinds[:_KINDS_SHOWN]))
    if len(kinds) > _KINDS_SHOWN:
        yield [f"  and {len(kinds) - _KINDS_SHOWN} more kinds"]
    yield [Word(f"Secrets: {counts.secrets}", BOLD)]
    rows: list[Line] = [
        ["stored", size(counts.stored_bytes)],
        ["content", f"{size(counts.content_bytes)}{_ratio(counts)}"],
    ]
    if counts.largest[1]:
        rows.append(["largest", f"{counts.largest[1]} ({size(counts.largest[0])})"])
    if counts.unreadable:
        rows.append(["not readable", str(counts.unreadable)])
    yield from (["  ", *line] for line in table(rows))


def _counted(rows: list[tuple[str, int]]) -> Iterator[Line]:
    yield from (["  ", *line] for line in table([[name, str(count)] for name, count in rows]))


def _ratio(counts: Counts) -> str:
    factor = counts.content_bytes / counts.stored_bytes if counts.stored_bytes else 1
    return f", {factor:.1f} times as much" if factor >= 1.05 else ""


def data(counts: Counts) -> Object:
    return {
        "managedResources": {state.value: count for state, count in sorted(counts.states.items())},
        "objects": dict(counts.kinds.most_common()),
        "secrets": {
            "count": counts.secrets,
            "notReadable": counts.unreadable,
            "storedBytes": counts.stored_bytes,
            "contentBytes": counts.content_bytes,
        },
    }
