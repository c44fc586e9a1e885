"""What `why` shows of programs of the garden that do not run."""

from datetime import UTC, datetime

import pytest

from gardener.api.garden import PROJECTS, SEEDS, SHOOTS
from kit.garden_objects import shoot
from kube.objects import Object
from kubectl.garden.why.finding import Level
from kubectl.garden.why.programs import LEASES, findings, needed_by

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def lease(renewed: str) -> Object:
    return {"spec": {"renewTime": renewed}}


def test_one_that_no_longer_renews_its_lease_does_not_run() -> None:
    leases = dict.fromkeys(LEASES, lease("2026-01-10T11:59:58.000000Z"))
    [found] = findings(leases | {"gardener-scheduler": lease("2026-01-10T11:00:00Z")}, NOW, needed="")
    assert (found.level, found.about) == (Level.PROBLEM, "program")
    assert found.text == (
        "gardener-scheduler does not run: it renewed its Lease garden/gardener-scheduler-leader-election last at "
        "2026-01-10T11:00:00Z (60m ago)"
    )
    assert "python -m devcluster status" in found.remedy


def test_one_that_the_object_waits_for_is_what_blocks_it() -> None:
    waiting, deleted = shoot("n/s"), {"metadata": {"name": "p", "deletionTimestamp": "2026-01-10T11:00:00Z"}}
    assert needed_by(SHOOTS, waiting) == "gardener-scheduler"
    assert needed_by(SHOOTS, shoot("n/s", seedName="a")) == ""
    assert needed_by(PROJECTS, deleted) == "gardener-controller-manager"
    assert needed_by(SEEDS, deleted) == needed_by(PROJECTS, {"metadata": {}}) == ""
    leases = dict.fromkeys(LEASES, lease("2026-01-10T11:00:00Z"))
    levels = {each.text.split()[0]: each.level for each in findings(leases, NOW, needed="gardener-scheduler")}
    assert levels == {"gardener-scheduler": Level.BLOCKED, "gardener-controller-manager": Level.PROBLEM}


@pytest.mark.parametrize("unknown", [None, {"spec": {}}, lease("soon")])
def test_nothing_is_reported_of_one_without_a_known_time(unknown: Object | None) -> None:
    assert not list(findings(dict.fromkeys(LEASES, unknown), NOW, needed=""))
