"""What `why` shows of a flow."""

from typing import Any

import pytest

from gardener.flow_reports import Awaited, FlowReport, State, TaskReport
from kube.objects import Key
from kubectl.garden.why.finding import Level
from kubectl.garden.why.flow import findings, remedy


def task(name: str, state: State, **more: Any) -> TaskReport:
    return TaskReport(id=name.lower(), name=name, state=state, **more)


def report(*tasks: TaskReport, state: State = State.RUNNING) -> FlowReport:
    return FlowReport(flow="f", state=state, began="2026-01-10T12:00:00Z", seconds=100.0, tasks=tasks)


def etcd(name: str, since: float) -> Awaited:
    return Awaited(kind="Etcd", key=Key("shoot--dev--s", name), since=since, reason="0 of 1 members\nare ready")


@pytest.mark.parametrize(
    ("of", "level", "text", "remedy"),
    [
        (
            task("Wait", State.RUNNING, awaited=[etcd("etcd-main", 40.0)]),
            Level.BLOCKED,
            "Wait: waits for Etcd shoot--dev--s/etcd-main for 60s: 0 of 1 members are ready",
            "in the seed, see its conditions, and whether etcd-druid runs: kubectl describe etcd etcd-main -n shoot--dev--s",
        ),
        (
            task("Wait", State.RUNNING, awaited=[etcd("etcd-main", 96.0)]),
            Level.NEXT,
            "Wait: waits for Etcd shoot--dev--s/etcd-main for 4s: 0 of 1 members are ready",
            "",
        ),
        (task("Work", State.RUNNING, seconds=3.0), Level.NEXT, "Work: runs for 3s", ""),
        (
            task("Work", State.RUNNING, seconds=3.0, reason="the garden"),
            Level.BLOCKED,
            "Work: runs for 3s, waits for: the garden",
            "",
        ),
        (
            task("Work", State.RUNNING, attempts=2, reason="the next attempt, after: no answer"),
            Level.PROBLEM,
            "Work: attempt 2, the next attempt, after: no answer",
            "wait: it is tried again with a growing delay; if the error persists, correct its cause",
        ),
        (
            task("Work", State.FAILED, error="no\nquota", codes=["ERR_INFRA_QUOTA_EXCEEDED"]),
            Level.PROBLEM,
            "Work: no quota (ERR_INFRA_QUOTA_EXCEEDED)",
            "raise the quota of the account, or use less of it, and request a retry",
        ),
        (
            task("Work", State.CANCELED, seconds=9.0),
            Level.PROBLEM,
            "Work: cancelled after 9s, when the flow ended",
            "",
        ),
    ],
)
def test_a_task_that_has_not_succeeded(of: TaskReport, level: Level, text: str, remedy: str) -> None:
    (found,) = findings(report(of, task("Done", State.SUCCEEDED)))
    assert (found.level, found.about, found.text, found.remedy) == (level, "task", text, remedy)


def test_each_object_has_the_time_since_when_it_is_awaited() -> None:
    waits = task("Wait", State.RUNNING, awaited=[etcd("etcd-main", 40.0), etcd("etcd-events", 90.0)])
    found = list(findings(report(waits)))
    assert [str(each.at) for each in found] == ["2026-01-10 12:00:40+00:00", "2026-01-10 12:01:30+00:00"]


def test_tasks_that_come_after_are_counted() -> None:
    left = [task(name, State.WAITING) for name in "ABCD"]
    *_, found = findings(report(task("Work", State.RUNNING), *left))
    assert (found.level, found.text) == (Level.INFO, "4 of 5 come after: A, B, C, ...")


def test_of_a_flow_that_has_succeeded_there_is_nothing_to_show() -> None:
    assert list(findings(report(task("Done", State.SUCCEEDED), state=State.SUCCEEDED))) == []


@pytest.mark.parametrize(
    ("kind", "key", "expected"),
    [
        (
            "ManagedResource",
            Key("s", "m"),
            "in the seed, see which of its objects is not good: kubectl mr describe m -n s",
        ),
        ("BackupEntry", Key("garden-dev", "b"), "kubectl gardener why backupentry b -n garden-dev"),
        (
            "DNSRecord",
            Key("s", "d"),
            "in the seed, check whether its extension runs, and its status: kubectl describe dnsrecord d -n s",
        ),
        ("Thing", Key("s", "t"), "in the seed, see its status and Events: kubectl describe thing t -n s"),
        ("A;b", Key("$(c)", "d|e"), "in the seed, see its status and Events: kubectl describe 'a;b' 'd|e' -n '$(c)'"),
    ],
)
def test_what_to_do_depends_on_the_kind(kind: str, key: Key, expected: str) -> None:
    assert remedy(Awaited(kind=kind, key=key, since=0.0, reason="r")) == expected
