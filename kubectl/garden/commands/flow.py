"""`kubectl gardener flow`: the tasks of the running or last flow of an object, over time."""

from collections.abc import Iterator

import click

from gardener.api.garden import SEEDS, SHOOTS
from gardener.flow_reports import Bar, FlowReport, State, bars, duration
from kube.objects import Key, Object, mapping
from kube.resources import Resource
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.garden.commands import asking
from kubectl.garden.gardenlet import gardenlet_of
from kubectl.output import Form
from kubectl.session import Session, on_cluster
from kubectl.style import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Line, Word, table

_WIDTH = 40
_COLORS = {
    State.WAITING: DIM,
    State.RUNNING: BLUE,
    State.SUCCEEDED: GREEN,
    State.FAILED: RED,
    State.CANCELED: YELLOW,
    State.NOT_STARTED: DIM,
}


@click.command
@click.argument("name", metavar="SHOOT", help="Name of the Shoot, or seed/NAME.")
@asking.seed
@asking.gardenlet
@options.form
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, url: str | None, form: Form | None) -> None:
    """Shows the duration of each task, its dependencies, errors, and remedies. Shows the running flow, or the last one
    if none is running; -o json contains both. Sends the request to the gardenlet through the API server of the seed,
    which requires the permission to get Leases, Pods and pods/proxy in its namespace garden.
    """
    resource, own = _asked_for(session, name)
    async with gardenlet_of(session, url, resource, own) as gardenlet:
        found = await gardenlet.flows(resource, own)
    if form is not None:
        output.show_data(found, form)
    else:
        output.show(lines(resource, own, found))


def _asked_for(session: Session, name: str) -> tuple[Resource, Key]:
    """Resource and key of the requested object. Raises UserError."""
    kind, slash, rest = name.partition("/")
    if not slash:
        return SHOOTS, session.key(name)
    resource = {"seed": SEEDS, "shoot": SHOOTS}.get(kind.lower())
    if resource is None or not rest:
        raise UserError(f"{name!r} is neither a Shoot nor a Seed", hint="for example: kubectl gardener flow seed/NAME")
    return resource, Key(session.namespace if resource.namespaced else "", rest)


def lines(resource: Resource, own: Key, found: Object) -> Iterator[Line]:
    report = FlowReport.of(mapping(found.get("running") or found.get("last")))
    yield [Word(f"{resource.kind} {own}", BOLD)]
    count = f"{report.succeeded} of {len(report.tasks)} tasks, {duration(report.seconds)} since {report.began}"
    yield [f"{report.flow} ", Word(report.state, _COLORS[report.state]), f", {count}"]
    yield from table([_row(each) for each in bars(report, width=_WIDTH)])


def _row(bar: Bar) -> Line:
    task, color = bar.task, _COLORS[bar.task.state]
    drawn = f"{' ' * bar.left}{'█' * bar.width}".ljust(_WIDTH)
    took = duration(task.seconds) if bar.width else ""
    return [Word(task.state, color), task.name, took, Word(drawn, color), _text(bar)]


def _text(bar: Bar) -> str:
    task = bar.task
    attempts = f"{task.attempts} attempts" if task.attempts > 1 else ""
    codes = f" ({', '.join(task.codes)})" if task.codes else ""
    error = f"{task.error}{codes} → {task.remedy}" if task.error else ""
    return "; ".join(filter(None, (task.why, attempts, error)))
