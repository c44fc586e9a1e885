"""What `check` makes of what it reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.keys import CLASS
from gardener.overview.states import ResourceState
from kube.objects import Object
from kube.x509 import make_ca
from kubectl.mr.commands.check import (
    Level,
    bundle_finding,
    definition_finding,
    lease_finding,
    lines,
    pending_findings,
    state_findings,
    warning_findings,
)
from kubectl.mr.webhook_entries import by_address, entries_of
from kubectl.style import rendered

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def definition(*, served: bool = True, established: str = "True", status: dict[str, Any] | None = None) -> Object:
    schema = {"openAPIV3Schema": {"properties": {"status": {"properties": status or {"pendingResources": {}}}}}}
    return {
        "spec": {"versions": [{"name": "v1alpha1", "served": served, "schema": schema}]},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


@pytest.mark.parametrize(
    ("obj", "level"),
    [
        (definition(), Level.GOOD),
        (definition(served=False), Level.BAD),
        (definition(established="False"), Level.BAD),
        (definition(status={"resources": {}}), Level.WARNING),
        ({}, Level.BAD),
    ],
)
def test_the_definition_has_to_serve_and_store_all(obj: Object, level: Level) -> None:
    assert definition_finding(obj).level is level


@pytest.mark.parametrize(
    ("spec", "level"),
    [
        ({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2025-12-31T23:59:50.000000Z"}, Level.GOOD),
        ({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2025-12-31T23:59:00.000000Z"}, Level.BAD),
        ({"holderIdentity": "", "renewTime": "2025-12-31T23:59:59.000000Z"}, Level.BAD),
        ({}, Level.BAD),
    ],
)
def test_an_agent_that_leads_has_renewed_its_lease(spec: Object, level: Level) -> None:
    assert lease_finding({"metadata": {"namespace": "garden", "name": "x"}, "spec": spec}, NOW).level is level


@pytest.mark.parametrize(
    ("having", "text"),
    [
        ({}, "an agent leads in namespace garden"),
        ({CLASS: "seed"}, "an agent leads in namespace garden, for the class seed"),
        ({CLASS: "resources"}, "an agent leads in namespace garden, for the class resources (the default)"),
        ({CLASS: "*"}, "an agent leads in namespace garden, for every class"),
    ],
)
def test_an_agent_is_named_with_its_class(having: dict[str, str], text: str) -> None:
    spec = {"holderIdentity": "a", "renewTime": "2025-12-31T23:59:50.000000Z"}
    lease = {"metadata": {"namespace": "garden", "name": "x", "annotations": having}, "spec": spec}
    assert lease_finding(lease, NOW).text == text


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (ResourceState.READY, Level.GOOD),
        (ResourceState.PROGRESSING, Level.WARNING),
        (ResourceState.SUSPENDED, Level.WARNING),
        (ResourceState.FAILED, Level.BAD),
        (ResourceState.UNHEALTHY, Level.BAD),
    ],
)
def test_failures_are_bad(state: ResourceState, level: Level) -> None:
    assert state_findings({state: ["a/b"]})[-1].level is level


@pytest.mark.parametrize(
    ("leading", "level", "remedy"),
    [
        ({"seed"}, Level.WARNING, "an agent is about to look at them; if it does not, see its log"),
        ({"*", "other"}, Level.WARNING, "an agent is about to look at them; if it does not, see its log"),
        ({None}, Level.WARNING, "is the agent of this class?"),
        ({"resources"}, Level.BAD, "set spec.class: the agents found are for the class resources (the default)"),
        (set(), Level.BAD, "start an agent of this class"),
    ],
)
def test_no_agent_handles_those_of_another_class(leading: set[str | None], level: Level, remedy: str) -> None:
    (found,) = pending_findings({"seed": ["garden/shop"]}, leading)
    assert (found.level, found.remedy) == (level, remedy)
    assert found.text == "pending, of the class seed: garden/shop"


def test_suspended_ones_are_not_forgotten() -> None:
    found = state_findings(
        {ResourceState.READY: ["a/b"], ResourceState.SUSPENDED: ["a/c"], ResourceState.PROGRESSING: ["a/d"]}
    )
    assert [rendered(line, colors=False) for line in lines(found)] == [
        "⚠ 1 of 3 ManagedResources ready",
        "⚠ suspended: a/c",
        "  ► kubectl mr resume NAME -n NAMESPACE, if no one works on them any more",
    ]


def test_those_with_warnings_are_named() -> None:
    assert warning_findings([]) == []
    assert [rendered(line, colors=False) for line in lines(warning_findings(["a/b", "a/c"]))] == [
        "⚠ applied with warnings: a/b, a/c",
        "  ► kubectl mr describe NAME -n NAMESPACE shows them",
    ]


def test_bundles_are_assessed_by_the_certificate_that_lasts_longest() -> None:
    made = datetime.now(UTC)
    bundle = make_ca("ca", now=made, lifetime=timedelta(days=365)).certificate_pem
    assert bundle_finding(["x"], b"", NOW).level is Level.WARNING
    assert bundle_finding(["x"], b"nonsense", NOW).level is Level.BAD
    now = datetime.now(UTC)
    assert bundle_finding(["x"], bundle, now).level is Level.GOOD
    assert bundle_finding(["x"], bundle, now + timedelta(days=360)).level is Level.WARNING
    assert bundle_finding(["x"], bundle, now + timedelta(days=4000)).level is Level.BAD


def test_entries_of_others_are_passed_over() -> None:
    service = {"service": {"namespace": "garden", "name": "grm", "path": "/a"}}
    url = {"url": "https://10.0.0.1:9443/a", "caBundle": "eA=="}
    configuration = {
        "metadata": {"name": "ours"},
        "webhooks": [
            {"name": "a.resources.gardener.cloud", "clientConfig": service},
            {"name": "b.resources.gardener.cloud", "clientConfig": url},
            {"name": "c.example.com", "clientConfig": url},
        ],
    }
    entries = entries_of(configuration)
    assert [entry.name for entry in entries] == ["a.resources.gardener.cloud", "b.resources.gardener.cloud"]
    assert list(by_address(entries)) == ["Service garden/grm", "https://10.0.0.1:9443"]
    assert entries[1].ca_bundle == b"x"
