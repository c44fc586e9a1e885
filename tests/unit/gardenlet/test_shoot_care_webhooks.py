"""Which webhooks may keep a Shoot from working, and how they are corrected."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.shoot.care.rules.remediation import MOST_REVERSALS, Reversals, corrected, lines_of
from agent.gardenlet.shoot.care.rules.webhooks import is_checked, is_problematic, problem_of
from gardener.keys import WARNING
from kube.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IN_KUBE_SYSTEM = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
NODE_LEASES = {"matchLabels": {"kubernetes.io/metadata.name": "kube-node-lease"}}
ELSEWHERE = {"matchLabels": {"kubernetes.io/metadata.name": "mine"}}


def webhook(resources: str, *, group: str = "", operations: str = "CREATE", scope: str = "*", **fields: Any) -> Object:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": [operations], "resources": [resources]}
    return {"name": "w.example.com", "rules": [{**rule, "scope": scope}], **fields}


def configuration(*webhooks: Object, **meta: Any) -> Object:
    return {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v", **meta}, "webhooks": list(webhooks)}


LEASES = {"group": "coordination.k8s.io", "failurePolicy": "Ignore"}


@pytest.mark.parametrize(
    ("found", "problematic"),
    [
        (webhook("pods"), True),
        (webhook("pods", failurePolicy="Fail", timeoutSeconds=1), True),
        (webhook("pods", failurePolicy="Ignore"), False),
        (webhook("pods", failurePolicy="Ignore", timeoutSeconds=16), True),
        (webhook("pods", namespaceSelector=ELSEWHERE), False),
        (webhook("pods", namespaceSelector=IN_KUBE_SYSTEM), True),
        (webhook("pods", objectSelector={"matchLabels": {"app": "mine"}}), False),
        (webhook("pods", objectSelector={"matchExpressions": [{"key": "mine", "operator": "DoesNotExist"}]}), True),
        (webhook("pods", operations="DELETE"), False),
        (webhook("pods", operations="*"), True),
        (webhook("pods", group="metrics.k8s.io"), False),
        (webhook("pods", scope="Cluster"), False),
        (webhook("nodes", scope="Namespaced"), False),
        (webhook("nodes/status", operations="UPDATE"), True),
        (webhook("*"), True),
        (webhook("*/scale", group="apps"), True),
        (webhook("namespaces", namespaceSelector=ELSEWHERE), False),
        (webhook("deployments", group="*"), True),
        (webhook("things", group="example.com"), False),
        # An unset time limit is ten seconds.
        (webhook("leases", **LEASES), True),
        (webhook("leases", timeoutSeconds=3, **LEASES), False),
        (webhook("leases", timeoutSeconds=4, **LEASES), True),
        (webhook("leases", timeoutSeconds=10, namespaceSelector=NODE_LEASES, **LEASES), True),
        (webhook("leases", timeoutSeconds=10, namespaceSelector=ELSEWHERE, **LEASES), False),
    ],
)
def test_problematic_webhooks(found: Object, problematic: bool) -> None:
    assert is_problematic(found) is problematic
    assert bool(problem_of(configuration(found))) is problematic


@pytest.mark.parametrize(
    ("labels", "checked"),
    [
        ({}, True),
        ({"app": "gardener-resource-manager"}, False),
        ({"resources.gardener.cloud/managed-by": "gardener"}, False),
        ({"resources.gardener.cloud/managed-by": "flux"}, True),
    ],
)
def test_whose_webhooks_are_checked(labels: dict[str, str], checked: bool) -> None:
    assert is_checked(configuration(webhook("pods"), labels=labels)) is checked


def expression(key: str, value: str) -> Object:
    return {"key": key, "operator": "NotIn", "values": [value]}


SPARED_NAMESPACES = [
    expression("gardener.cloud/purpose", "kube-system"),
    expression("kubernetes.io/metadata.name", "kube-system"),
    expression("shoot.gardener.cloud/no-cleanup", "true"),
]
SPARED_PODS = [expression("origin", "gardener"), expression("shoot.gardener.cloud/no-cleanup", "true")]


@pytest.mark.parametrize(
    ("found", "changed", "reported"),
    [
        (webhook("nodes"), {"failurePolicy": "Ignore"}, ["failurePolicy"]),
        (
            webhook("nodes", timeoutSeconds=20),
            {"failurePolicy": "Ignore", "timeoutSeconds": 15},
            ["timeout", "failure"],
        ),
        (webhook("nodes", timeoutSeconds=20, failurePolicy="Ignore"), {"timeoutSeconds": 15}, ["timeoutSeconds"]),
        (webhook("leases", **LEASES), {"timeoutSeconds": 3}, ["timeoutSeconds"]),
        (webhook("configmaps"), {"namespaceSelector": {"matchExpressions": SPARED_NAMESPACES}}, ["namespaceSelector"]),
        (
            webhook("pods"),
            {
                "objectSelector": {"matchExpressions": SPARED_PODS},
                "namespaceSelector": {"matchExpressions": SPARED_NAMESPACES},
            },
            ["objectSelector", "namespaceSelector"],
        ),
    ],
)
def test_corrections(found: Object, changed: Object, reported: list[str]) -> None:
    wanted = corrected(configuration(found, annotations={"mine": "kept"}))
    assert wanted is not None
    assert wanted["webhooks"] == [{**found, **changed}]
    assert wanted["metadata"]["annotations"]["mine"] == "kept"
    assert all(line.startswith(f"- {each}") for line, each in zip(lines_of(wanted), reported, strict=True))
    assert not is_problematic(wanted["webhooks"][0])
    assert corrected(wanted) is None


@pytest.mark.parametrize(
    "harmless",
    [
        configuration(webhook("things", group="example.com")),
        configuration(webhook("nodes"), labels={"remediation.webhook.shoot.gardener.cloud/exclude": "true"}),
        configuration(webhook("nodes"), labels={"resources.gardener.cloud/managed-by": "gardener"}),
    ],
)
def test_what_is_left_as_it_is(harmless: Object) -> None:
    assert corrected(harmless) is None


def test_the_annotation_lists_what_is_in_effect() -> None:
    first = corrected(configuration(webhook("nodes"), {**webhook("configmaps"), "name": "other"}))
    assert first is not None
    # Its owner sets one back, and removes the other webhook.
    again = corrected({**first, "webhooks": [webhook("nodes", timeoutSeconds=30, failurePolicy="Ignore")]})
    assert again is not None
    assert lines_of(again) == [
        '- failurePolicy of webhook "w.example.com" was set to Ignore',
        '- timeoutSeconds of webhook "w.example.com" was set to 15',
    ]
    assert WARNING in again["metadata"]["annotations"]


def test_who_sets_it_back_again_and_again_is_left_alone_for_a_day() -> None:
    fields = [
        {"manager": "gardenlet", "time": "2026-01-01T00:00:02Z"},
        {"manager": "operator", "time": "2026-01-01T00:00:01Z"},
    ]
    found, reversals = configuration(webhook("nodes"), managedFields=fields), Reversals()

    def may_correct(now: datetime) -> bool:
        return reversals.may_correct(found, ["- failurePolicy"], own="gardenlet", now=now)

    assert [may_correct(NOW + timedelta(minutes=n)) for n in range(MOST_REVERSALS)] == [True] * MOST_REVERSALS
    assert not may_correct(NOW + timedelta(minutes=5))
    assert '"operator" has reverted 3 times' in reversals.text()
    assert not may_correct(NOW + timedelta(hours=23))
    assert may_correct(NOW + timedelta(hours=25))


def test_what_else_is_to_be_corrected_is_announced_too() -> None:
    reversals = Reversals(announced=["- a", "- b"])
    assert reversals.are_announced(["- b"])
    assert not reversals.are_announced(["- b", "- c"])


def test_few_reversals_are_corrected_for_ever() -> None:
    reversals, found = Reversals(), configuration(webhook("nodes"))
    times = [NOW + timedelta(minutes=40 * n) for n in range(12)]
    assert all(reversals.may_correct(found, [], own="gardenlet", now=each) for each in times)
