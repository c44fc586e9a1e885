"""`kubectl mr history`: the applied versions of a ManagedResource that are kept."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from gardener import keys
from gardener.managed_resource.history import CHANGE_CAUSE
from gardener.overview import hints
from kube.objects import Object, annotations, key, metadata
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.revisions import applied_digest, current, digest_of, json_of, number_of, read_revisions
from kubectl.output import Output
from kubectl.session import Session, on_cluster
from kubectl.style import GREEN, YELLOW, Line, Word, age, table

_DIGITS = 12


@click.command
@parameters.name
@options.output
@on_cluster(target=False)
async def command(session: Session, *, name: str, form: Output | None) -> None:
    """The agent keeps revisions according to its setting controllers.managedResource.historyLimit, or the annotation
    history-limit of the ManagedResource. Their content is not shown. Requires the permission to list Secrets.

    See kubectl mr rollback --dry-run server for the changes that a revision would make.
    """
    managed_resource = await managed_resources.named(session, name)
    revisions = await read_revisions(session, managed_resource)
    applied = current(revisions, managed_resource)
    if form is Output.NAME:
        output.show([f"secret/{key(revision).name}"] for revision in revisions)
    elif form in {Output.JSON, Output.YAML}:
        output.show_data([json_of(revision, applied=applied) for revision in revisions], form)
    elif revisions:
        output.show(lines(revisions, applied, datetime.now(UTC), wide=form is Output.WIDE))
    if not revisions:
        output.waiting(f"no applied version of ManagedResource {key(managed_resource)} is kept")
        if not annotations(managed_resource).get(keys.HISTORY_LIMIT):
            output.begin(f"to keep the last ten, annotate it: {keys.HISTORY_LIMIT}=10")
    elif not applied and applied_digest(managed_resource):
        output.warn(f"the applied version is not among them; see {hints.command('events', key(managed_resource))}")


def lines(revisions: Sequence[Object], applied: int, now: datetime, *, wide: bool) -> list[Line]:
    header = ["REVISION", "AGE", "DIGEST", "SECRETS", *(["KEPT IN"] if wide else []), "CAUSE"]
    return table(list(_rows(revisions, applied, now, wide=wide)), header=header)


def _rows(revisions: Sequence[Object], applied: int, now: datetime, *, wide: bool) -> Iterator[Line]:
    before = ""
    for revision in revisions:
        notes, number = annotations(revision), number_of(revision)
        cause = notes.get(CHANGE_CAUSE) or ""
        # The annotation of the ManagedResource stays until it is overwritten.
        new_cause = cause if cause != before else ""
        before = cause
        yield [
            Word(f"{number} (applied)", GREEN) if number == applied else str(number),
            age(metadata(revision).get("creationTimestamp"), now),
            digest_of(revision)[:_DIGITS],
            notes.get(keys.SOURCE_SECRETS) or "",
            *([key(revision).name] if wide else []),
            Word("not kept: too large", YELLOW) if keys.NOT_KEPT in notes else " ".join(new_cause.split()),
        ]
