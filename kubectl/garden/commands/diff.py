"""`kubectl gardener diff`: changes of the next reconciliation of a Shoot."""

import difflib
from collections.abc import Iterator
from typing import Any

import click

from gardener.api.garden import SHOOTS
from gardener.difference_reports import DifferenceReport, ObjectDifference
from kube.objects import Object
from kubectl import options, output
from kubectl.garden.commands import asking
from kubectl.garden.gardenlet import gardenlet_of
from kubectl.output import Form
from kubectl.session import Session, on_cluster
from kubectl.style import BOLD, DIM, GREEN, RED, Line, Word, counted

_DIFFERENT, _FAILED = 1, 2
_COLORS = {"+": GREEN, "-": RED, "@": DIM}


def _complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from kubectl.completion import names_of

    return names_of(SHOOTS, ctx, incomplete)


@click.command
@click.argument("name", metavar="SHOOT", help="Name of the Shoot.", shell_complete=_complete_name)
@asking.seed
@asking.gardenlet
@options.form
@on_cluster(target=False, error_code=_FAILED)
async def command(session: Session, *, name: str, url: str | None, form: Form | None) -> int:
    """Shows objects of the garden, of the seed, and of the Shoot as applied by the resource manager. Writes nothing,
    and hides values of Secrets. Exit code 0: no differences, 1: differences, 2: an object cannot be written, or is
    unknown.

    Sends the request to the gardenlet like kubectl gardener flow, and requires the same permissions.
    """
    own = session.key(name)
    async with gardenlet_of(session, url, SHOOTS, own) as gardenlet:
        found = await gardenlet.differences(SHOOTS, own)
    report = DifferenceReport.of(found)
    if form is not None:
        output.show_data(report.data(), form)
    else:
        output.show(lines(report))
        _say(report)
    if report.unknown or any(each.problem for each in report.differences):
        return _FAILED
    return _DIFFERENT if report.differences else 0


def _say(report: DifferenceReport) -> None:
    for each in report.differences:
        if each.problem:
            output.warn(f"{each.kind} {each.name} can't be written: {each.problem}")
    for unknown in report.unknown:
        output.warn(f"not known, with all that comes after it: {unknown.task}: {unknown.reason}")
    if report.differences:
        output.waiting(counted(len(report.differences), "difference"))
    elif not report.unknown:
        output.done("no differences")


def lines(report: DifferenceReport) -> Iterator[Line]:
    for each in report.differences:
        yield from _of_one(each)


def _of_one(difference: ObjectDifference) -> Iterator[Line]:
    where = f"{difference.place}: {difference.kind} {difference.name}"
    yield [Word(f"{where} ({difference.within})" if difference.within else where, BOLD)]
    before, after = _text(difference.before), _text(difference.after)
    compared = difflib.unified_diff(before, after, _name(difference.before), _name(difference.after), lineterm="", n=3)
    for line in compared:
        yield [Word(line, _COLORS.get(line[:1], ""))]


def _name(obj: Object | None) -> str:
    return "/dev/null" if obj is None else f"{obj['kind']}/{obj['metadata']['name']}"


def _text(obj: Object | None) -> list[str]:
    return [] if obj is None else output.as_yaml([_sorted(obj)]).removesuffix("\n").split("\n")


def _sorted(value: Any) -> Any:
    """Sort fields: their order is no difference."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
