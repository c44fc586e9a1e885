"""What `why` shows of programs of the garden that do not run."""

from datetime import UTC, datetime

import pytest

from kube.objects import Object
from kubectl.garden.why.finding import Level
from kubectl.garden.why.programs import LEASES, findings

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def lease(renewed: str) -> Object:
    return {"spec": {"renewTime": renewed}}


def test_one_that_no_longer_renews_its_lease_does_not_run() -> None:
    leases = dict.fromkeys(LEASES, lease("2026-01-10T11:59:58.000000Z"))
    [found] = findings(leases | {"gardener-scheduler": lease("2026-01-10T11:00:00Z")}, NOW)
    assert (found.level, found.about) == (Level.PROBLEM, "program")
    assert found.text == (
        "gardener-scheduler does not run: it renewed its Lease garden/gardener-scheduler-leader-election last at "
        "2026-01-10T11:00:00Z (60m ago)"
    )
    assert "python -m devcluster status" in found.remedy


@pytest.mark.parametrize("unknown", [None, {"spec": {}}, lease("soon")])
def test_nothing_is_reported_of_one_without_a_known_time(unknown: Object | None) -> None:
    assert not list(findings(dict.fromkeys(LEASES, unknown), NOW))
