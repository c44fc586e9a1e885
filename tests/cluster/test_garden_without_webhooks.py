"""A garden whose admission server is gone: what the API server checks by itself still holds, and it says what is missing."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import Garden as Box
from devcluster.pytest_plugin import RunClusters
from gardener.garden import resources
from kit.garden import Garden
from kit.garden_objects import garden_object
from kube.errors import ApiError, Invalid
from kube.resources import Resource

pytestmark = pytest.mark.timeout(600)

SEED = "lonely"


@pytest.fixture(scope="module")
def lonely(devcluster_run: RunClusters) -> Iterator[Garden]:
    """With a Seed, of which the webhooks were asked when they were there."""
    with Cluster() as cluster:
        server = Box(cluster).install()
        garden = Garden(cluster)
        kinds = ("BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord")
        garden.create(
            resources.CONTROLLER_REGISTRATIONS,
            "local",
            spec={"resources": [{"kind": k, "type": "local"} for k in kinds]},
        )
        garden.create(resources.SEEDS, SEED, spec=garden_object(resources.SEEDS)["spec"])
        server.stop()
        yield garden


@pytest.mark.parametrize("resource", [resources.SEEDS, resources.CLOUD_PROFILES], ids=lambda each: each.plural)
def test_a_refused_write_names_the_webhook_and_what_cannot_be_reached(lonely: Garden, resource: Resource) -> None:
    with pytest.raises(ApiError) as refused:
        lonely.create(resource, "new", spec=garden_object(resource)["spec"])
    assert f'failed calling webhook "{resource.plural}.garden' in str(refused.value)
    assert f"/webhooks/garden/{resource.plural}/" in str(refused.value)
    assert "connection refused" in str(refused.value)


def test_the_status_of_an_object_is_written(lonely: Garden) -> None:
    condition = {"type": "GardenletReady", "status": "True", "reason": "Ready", "message": ""}
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
    status = {"conditions": [{**condition, **times}]}
    written = lonely.patch(resources.SEEDS, SEED, {"status": status}, status=True)
    assert written["status"]["conditions"] == status["conditions"]


def test_schema_and_rules_hold_for_what_no_webhook_is_asked_about(lonely: Garden) -> None:
    with pytest.raises(Invalid, match="status.conditions"):
        lonely.patch(resources.SEEDS, SEED, {"status": {"conditions": "all"}}, status=True)
    lonely.patch(resources.SEEDS, SEED, {"status": {"clusterIdentity": "a"}}, status=True)
    with pytest.raises(Invalid, match="immutable"):
        lonely.patch(resources.SEEDS, SEED, {"status": {"clusterIdentity": "b"}}, status=True)


def test_objects_are_read(lonely: Garden) -> None:
    assert lonely.get(resources.SEEDS, SEED)["spec"]["provider"]["type"] == "local"
