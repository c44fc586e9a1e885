"""A garden whose admission server is gone: what the API server checks by itself still holds, and it reports what is missing."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import garden as resources
from gardener.api.garden.definitions import DEFINITIONS
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kube.errors import ApiError, Invalid
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.registry import KINDS
from webhooks.rules.registration import WRITE

pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(600)]

SHOOT = "s"


@pytest.fixture(scope="module")
def left_alone(devcluster_run: RunClusters) -> Iterator[ShootPlace]:
    """With a Seed and a Shoot on it, of which the webhooks were queried when they were there."""
    with Cluster() as cluster:
        server = GardenBox(cluster).install()
        place = ShootPlace(Garden(cluster))
        place.shoot(SHOOT, seedName=place.seed())
        place.create(resources.SHOOT_STATES, SHOOT, spec={})
        server.stop()
        yield place


def assert_names_the_webhook(refused: ApiError, resource: Resource) -> None:
    assert f'failed calling webhook "{resource.plural}.garden' in str(refused)
    assert f"/webhooks/garden/{resource.plural}/" in str(refused)
    assert "connection refused" in str(refused)


WRITTEN = [each.resource for each in KINDS if each.definition in DEFINITIONS and set(WRITE) & set(each.validated)]


def test_writes_of_all_kinds_but_one_need_the_webhooks() -> None:
    """ShootStates are checked on deletion only."""
    assert {each.resource for each in DEFINITIONS} - set(WRITTEN) == {resources.SHOOT_STATES}


@pytest.mark.parametrize("resource", WRITTEN, ids=lambda each: each.plural)
def test_a_refused_write_names_the_webhook_and_what_cannot_be_reached(
    left_alone: ShootPlace, resource: Resource
) -> None:
    obj = garden_object(resource)
    fields = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "metadata"}}
    with pytest.raises(ApiError) as refused:
        left_alone.create(resource, "new", **fields)
    assert_names_the_webhook(refused.value, resource)


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"purpose": "development"}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"finalizers": ["example.com/held"]}},
    ],
    ids=["spec", "labels", "finalizers"],
)
def test_nothing_of_an_object_but_its_status_is_changed(left_alone: ShootPlace, patch: Object) -> None:
    """Rules concern labels, annotations and finalizers, too: nothing gets past them."""
    before = left_alone.get(resources.SHOOTS, SHOOT)
    with pytest.raises(ApiError) as refused:
        left_alone.patch(resources.SHOOTS, SHOOT, patch)
    assert_names_the_webhook(refused.value, resources.SHOOTS)
    assert left_alone.get(resources.SHOOTS, SHOOT) == before


@pytest.mark.parametrize(
    "resource",
    [resources.SHOOTS, resources.SHOOT_STATES, resources.PROJECTS, resources.SEEDS],
    ids=lambda each: each.plural,
)
def test_what_needs_a_confirmation_or_is_in_use_is_not_deleted(left_alone: ShootPlace, resource: Resource) -> None:
    name = SHOOT if resource.namespaced else left_alone.name
    namespace = left_alone.namespace if resource.namespaced else ""
    with pytest.raises(ApiError) as refused:
        left_alone.garden.delete(resource, name, namespace=namespace)
    assert_names_the_webhook(refused.value, resource)


def test_a_gardenlet_reports_what_becomes_of_a_shoot(left_alone: ShootPlace) -> None:
    operation = {"type": "Create", "state": "Processing", "progress": 30, "description": "Waiting"}
    status = {"lastOperation": {**operation, "lastUpdateTime": "2026-01-01T00:00:00Z"}, "observedGeneration": 1}
    written = left_alone.patch(resources.SHOOTS, SHOOT, {"status": status}, status=True)
    assert written["status"].items() >= status.items()
    with pytest.raises(Invalid, match=r"status\.lastOperation\.state"):
        left_alone.patch(resources.SHOOTS, SHOOT, {"status": {"lastOperation": {"state": "Odd"}}}, status=True)


def test_the_status_of_an_object_is_written(left_alone: ShootPlace) -> None:
    condition = {"type": "GardenletReady", "status": "True", "reason": "Ready", "message": ""}
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
    status = {"conditions": [{**condition, **times}]}
    written = left_alone.patch(resources.SEEDS, left_alone.name, {"status": status}, status=True)
    assert written["status"]["conditions"] == status["conditions"]


def test_schema_and_rules_hold_for_what_no_webhook_is_queried_about(left_alone: ShootPlace) -> None:
    with pytest.raises(Invalid, match="status.conditions"):
        left_alone.patch(resources.SEEDS, left_alone.name, {"status": {"conditions": "all"}}, status=True)
    left_alone.patch(resources.SEEDS, left_alone.name, {"status": {"clusterIdentity": "a"}}, status=True)
    with pytest.raises(Invalid, match="immutable"):
        left_alone.patch(resources.SEEDS, left_alone.name, {"status": {"clusterIdentity": "b"}}, status=True)


def test_objects_are_read(left_alone: ShootPlace) -> None:
    assert left_alone.get(resources.SEEDS, left_alone.name)["spec"]["provider"]["type"] == left_alone.name
