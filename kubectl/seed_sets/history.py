"""`kubectl mss history`: the former templates of a set that the controller manager keeps."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from gardener.garden.managed_seed_sets import CHANGE_CAUSE, templates_in
from kube.objects import Object, annotations, key, mapping, metadata
from kubectl import output
from kubectl.seed_sets import reading
from kubectl.session import Session, on_cluster
from kubectl.style import GREEN, Line, Word, age, table


@click.command
@reading.name
@click.option(
    "--revision", type=click.IntRange(min=1), metavar="N", help="Show the templates of this revision, as YAML."
)
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, revision: int | None) -> None:
    """Lists the newest revision last, which is applied to all replicas. The label controller-revision-hash of each
    Shoot shows its current revision. The cause is the annotation kubernetes.io/change-cause of the set when the
    revision was created.
    """
    seed_set = await reading.seed_set_of(session, name)
    revisions = await reading.revisions_of(session, seed_set)
    if revision is None:
        output.show(lines(seed_set, revisions, datetime.now(UTC)))
    else:
        output.write(output.as_yaml([{"spec": templates_in(reading.of_number(revisions, revision))}]))


def lines(seed_set: Object, revisions: Sequence[Object], now: datetime) -> list[Line]:
    return table(list(_rows(seed_set, revisions, now)), header=["REVISION", "AGE", "NAME", "CAUSE"])


def _rows(seed_set: Object, revisions: Sequence[Object], now: datetime) -> Iterator[Line]:
    current = mapping(seed_set.get("status")).get("currentRevision")
    for revision in revisions:
        own, number = key(revision).name, reading.number_of(revision)
        cause = annotations(revision).get(CHANGE_CAUSE) or ""
        yield [
            Word(f"{number} (current)", GREEN) if own == current else str(number),
            age(metadata(revision).get("creationTimestamp"), now),
            own,
            " ".join(cause.split()),
        ]
