"""Deletions that are refused: an Event when they have been for some time, and what was never created blocks none."""

from types import SimpleNamespace
from typing import Any

import pytest

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.common.recent_changes import RecentChanges
from agent.resource_manager.managed_resource import report
from agent.resource_manager.managed_resource.removal import failed
from agent.resource_manager.managed_resource.report import Reporter
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from gardener.managed_resource.conditions import has_not_been_read
from gardener.managed_resource.messages import apply_error_text, apply_message
from kit.objects import managed_resource, reference
from kube.errors import Forbidden
from kube.objects import Key, Object

MR = managed_resource("ns/mr")
REFUSED = (
    'configmaps "c" is forbidden: User "agent" cannot delete resource "configmaps" in API group "" '
    'in the namespace "ns"'
)


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def event(self, _: Object, __: str, reason: str, message: str) -> None:
        self.events.append((reason, message))


def test_one_event_reports_that_a_deletion_has_failed_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    now, recorder = [1000.0], Recorder()
    monkeypatch.setattr(report, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    stand_in: Any = None
    events: Any = recorder
    reporter = Reporter(stand_in, events, RecentChanges(limit=0), versions=stand_in, sync_period=60, inputs=Inputs())
    reasons = []
    for _ in range(8):
        pending = failed(reference("v1 ConfigMap", "ns/c"), Forbidden(403, message=REFUSED))
        outcome = reporter.removal(ChangeSet(owner=Key("ns", "mr"), pending=[pending]), [])
        reporter.removal_failed(MR, outcome)
        reasons.append(outcome.reason)
        now[0] += 20
    assert reasons == ["DeletionPending"] * 3 + ["DeletionFailed"] * 5
    [(reason, message)] = recorder.events
    assert reason == "DeletionFailed"
    assert f'deletion of old resource "v1/ConfigMap/ns/c" is still pending: {REFUSED}' in message
    assert message.endswith("; allow agent to delete configmaps in namespace ns, in the target cluster")


UNREADABLE = 'services "s" is forbidden: User "agent" cannot get resource "services" in API group ""'
S, T = "v1/Service/ns/s", "v1/Service/ns/t"


@pytest.mark.parametrize(
    ("errors", "reason", "expected"),
    [
        ([(S, UNREADABLE)], "ApplyFailed", True),
        ([(S, UNREADABLE), (T, "is invalid")], "ApplyFailed", True),
        ([(S, UNREADABLE)], "DeletionPending", False),
        # It may have been created before.
        ([(S, "is invalid")], "ApplyFailed", False),
        ([(S, "is invalid"), (T, UNREADABLE)], "ApplyFailed", False),
        ([(S, UNREADABLE.replace(" get ", " update "))], "ApplyFailed", False),
        ([(T, UNREADABLE)], "ApplyFailed", False),
    ],
)
def test_an_object_was_never_created_if_it_could_not_be_read(
    errors: list[tuple[str, str]], reason: str, expected: bool
) -> None:
    message = apply_message([apply_error_text(resource, text) for resource, text in errors])
    applied = {"type": "ResourcesApplied", "status": "False", "reason": reason, "message": message}
    assert has_not_been_read(managed_resource("ns/mr", conditions=[applied]), S) is expected
