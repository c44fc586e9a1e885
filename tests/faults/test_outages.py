"""One outage of each family that `python -m tests.outages` plays: the product works again, and nothing was recreated.

How long it takes is reported by the program, not asserted: waits are for what has to come true.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from outages import access, admission, clusters, machine
from outages.stage import Outcome, Stage, working


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """What happens to it must not happen to others."""
    with Cluster() as own:
        yield own


async def test_an_agent_works_again_after_outages_and_recreates_nothing(own_cluster: Cluster, tmp_path: Path) -> None:
    async with working(own_cluster, own_cluster, tmp_path) as stage:
        for outcome in [
            await clusters.api_server_frozen(stage, 2),
            await access.serving_certificate(stage, 0),
            *await clock_jumps(stage),
        ]:
            assert "recreated" not in outcome.reported
        assert all(each.output == "leader election lost\n" for each in stage.agent.exits)


async def clock_jumps(stage: Stage) -> list[Outcome]:
    if not stage.clock.is_movable:
        return []
    return [await machine.clock_jumped(stage, jump, 0) for jump in (3600.0, -3600.0)]


async def test_pods_are_admitted_when_one_of_two_webhook_servers_was_killed(own_cluster: Cluster) -> None:
    async with admission.serving(own_cluster) as stage:
        await admission.killed(stage)
        assert stage.load.failures == []
