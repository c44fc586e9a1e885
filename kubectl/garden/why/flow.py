"""Findings about the flow of a Shoot or Seed, as its gardenlet reports it: awaited objects, and failures."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from shlex import quote

from gardener import error_codes
from gardener.api.druid import ETCDS
from gardener.api.extensions import ALL_EXTENSIONS
from gardener.api.garden import BACKUP_ENTRIES
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.flow_reports import Awaited, FlowReport, State, TaskReport, duration
from kube.clock import time_or_none
from kube.resources import DEPLOYMENTS, LEASES, NAMESPACES, SECRETS, SERVICES
from kubectl.garden.why.finding import Finding, Level, one_line

ABOUT = "task"
_MOST_NAMED = 3
_USUAL_SECONDS = 5.0
"""New objects and programs usually take that long: nothing blocks them, and there is nothing to do."""
_EXTENSIONS = frozenset(each.kind for each in ALL_EXTENSIONS)
_SEE: Mapping[str, str] = {
    DEPLOYMENTS.kind: "see why its pods are not ready: kubectl describe deployment {name} -n {namespace}",
    ETCDS.kind: "see its conditions, and whether etcd-druid runs: kubectl describe etcd {name} -n {namespace}",
    MANAGED_RESOURCES.kind: "see which of its objects is not good: kubectl mr describe {name} -n {namespace}",
    SERVICES.kind: "see whether load balancers are made in the seed: kubectl describe service {name} -n {namespace}",
    SECRETS.kind: (
        "see whether the resource manager of the Shoot runs, which writes it: "
        "kubectl get deployment gardener-resource-manager -n {namespace}"
    ),
    NAMESPACES.kind: "its conditions show the remaining objects: kubectl describe namespace {name}",
    LEASES.kind: "see whether the program runs that holds it: kubectl describe lease {name} -n {namespace}",
}
"""Remedy for an awaited object, by kind, in the cluster of the seed."""
_OF_EXTENSION = "check whether its extension runs, and its status: kubectl describe {kind} {name} -n {namespace}"
_OF_ENTRY = "kubectl gardener why backupentry {name} -n {namespace}"
_OTHER = "see its status and Events: kubectl describe {kind} {name} -n {namespace}"


def findings(report: FlowReport) -> Iterator[Finding]:
    """Findings about a flow that runs, or that has not succeeded."""
    if report.state is State.SUCCEEDED:
        return
    for task in report.tasks:
        match task.state:
            case State.RUNNING:
                yield from _running(report, task)
            case State.FAILED:
                yield _failed(task)
            case State.CANCELED:
                message = f"{task.name}: cancelled after {duration(task.seconds)}, when the flow ended"
                yield Finding(level=Level.PROBLEM, about=ABOUT, text=message)
    left = [each.name for each in report.tasks if each.state in {State.WAITING, State.NOT_STARTED}]
    if left:
        named = ", ".join(left[:_MOST_NAMED]) + (", ..." if len(left) > _MOST_NAMED else "")
        yield Finding(level=Level.INFO, about=ABOUT, text=f"{len(left)} of {len(report.tasks)} come after: {named}")


def _running(report: FlowReport, task: TaskReport) -> Iterator[Finding]:
    flow_began = time_or_none(report.began)
    for awaited in task.awaited:
        begun = None if flow_began is None else flow_began + timedelta(seconds=awaited.since)
        waited = max(report.seconds - awaited.since, 0.0)
        is_late = waited > _USUAL_SECONDS
        what = f"waits for {awaited.kind} {awaited.key} for {duration(waited)}: {one_line(awaited.reason)}"
        yield Finding(
            level=Level.BLOCKED if is_late else Level.NEXT,
            about=ABOUT,
            text=f"{task.name}: {what}",
            remedy=remedy(awaited) if is_late else "",
            at=begun,
        )
    if task.awaited:
        return
    if task.attempts > 1:
        message = f"{task.name}: attempt {task.attempts}, {one_line(task.reason)}"
        yield Finding(level=Level.PROBLEM, about=ABOUT, text=message, remedy=error_codes.remedy(task.codes))
        return
    reason = f", waits for: {one_line(task.reason)}" if task.reason else ""
    text = f"{task.name}: runs for {duration(task.seconds)}{reason}"
    yield Finding(level=Level.BLOCKED if reason else Level.NEXT, about=ABOUT, text=text)


def _failed(task: TaskReport) -> Finding:
    codes = f" ({', '.join(task.codes)})" if task.codes else ""
    message = f"{task.name}: {one_line(task.error)}{codes}"
    return Finding(level=Level.PROBLEM, about=ABOUT, text=message, remedy=task.remedy)


def remedy(awaited: Awaited) -> str:
    """Remedy for an awaited object."""
    kind, name = awaited.kind, awaited.key
    if kind == BACKUP_ENTRIES.kind and name.namespace:
        pattern = _OF_ENTRY
    else:
        pattern = f"in the seed, {_SEE.get(kind) or (_OF_EXTENSION if kind in _EXTENSIONS else _OTHER)}"
    # The report is that of a gardenlet, which may name anything.
    return pattern.format(kind=quote(kind.lower()), name=quote(name.name), namespace=quote(name.namespace))
