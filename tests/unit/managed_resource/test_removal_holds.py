"""Which objects stay while others are not gone yet, and for how long."""

from datetime import timedelta

import pytest

from agent.resource_manager.managed_resource.rules.removal_holds import Awaited, RemovalHolds
from gardener.managed_resource.order import Stage, removal_stage
from kit.objects import reference

RBAC, OWN, OTHER = "rbac.authorization.k8s.io/v1", "own.example.com/v1 Bucket", "other.example.com/v1 Bucket"
HOLD, PROTECTION = ("example.com/hold",), ("kubernetes.io/pvc-protection",)
TIMEOUT = timedelta(minutes=10)
DEPLOYMENT = "apps/v1 Deployment"
LATER = (
    DEPLOYMENT,
    "v1 Service",
    "v1 ConfigMap",
    f"{RBAC} ClusterRole",
    "v1 Namespace",
    "apiregistration.k8s.io/v1 APIService",
)
DEFINITION = "apiextensions.k8s.io/v1 CustomResourceDefinition"


@pytest.mark.parametrize(
    ("kind", "finalizers", "stage"),
    [
        ("shop.example.com/v1 Bucket", (), Stage.CUSTOM_RESOURCES),
        ("resources.gardener.cloud/v1alpha1 ManagedResource", (), Stage.CUSTOM_RESOURCES),
        ("snapshot.storage.k8s.io/v1 VolumeSnapshot", (), Stage.CUSTOM_RESOURCES),
        ("example.com/v1 Deployment", (), Stage.CUSTOM_RESOURCES),
        ("v1 ConfigMap", HOLD, Stage.FINALIZED),
        ("v1 Service", ("service.kubernetes.io/load-balancer-cleanup",), Stage.FINALIZED),
        (f"{RBAC} Role", HOLD, Stage.FINALIZED),
        ("v1 PersistentVolumeClaim", PROTECTION, Stage.USED),
        ("v1 PersistentVolumeClaim", HOLD, Stage.USED),
        ("v1 Namespace", HOLD, Stage.USED),
        (DEPLOYMENT, HOLD, Stage.FINALIZED_WORKLOADS),
        (DEPLOYMENT, ("foregroundDeletion",), Stage.WORKLOADS),
        ("batch/v1 CronJob", (), Stage.WORKLOADS),
        ("v1 Service", (), Stage.OTHERS),
        ("apiregistration.k8s.io/v1 APIService", (), Stage.OTHERS),
        ("v1 Secret", (), Stage.USED),
        ("scheduling.k8s.io/v1 PriorityClass", (), Stage.USED),
        (DEFINITION, (), Stage.DEFINITIONS),
        (DEFINITION, HOLD, Stage.DEFINITIONS),
        ("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", (), Stage.ADMISSION),
    ],
)
def test_in_which_stage_an_object_goes(kind: str, finalizers: tuple[str, ...], stage: Stage) -> None:
    assert removal_stage(reference(kind, "ns/n"), finalizers) is stage


def holds(*, has_workloads: bool = True, timeout: timedelta = TIMEOUT) -> RemovalHolds:
    return RemovalHolds(timeout=timeout, has_workloads=has_workloads, defined={"own.example.com"})


def awaited(kind: str, *, minutes: int = 0, failed: bool = False, held_by: str = "") -> Awaited:
    return Awaited(reference(kind, "ns/a"), failed, timedelta(minutes=minutes), held_by)


def held(found: RemovalHolds, kinds: tuple[str, ...] = (*LATER, DEFINITION)) -> dict[str, timedelta | None]:
    """What stays, and how long yet."""
    references = {kind: reference(kind, "ns/n") for kind in kinds}
    each = {kind: found.hold_of(one, removal_stage(one)) for kind, one in references.items()}
    return {kind: hold.left for kind, hold in each.items() if hold is not None}


def test_a_custom_resource_that_is_defined_here_keeps_all_else_without_limit() -> None:
    found = holds()
    found.add(Stage.CUSTOM_RESOURCES, [awaited(OWN, minutes=1000), awaited(OTHER, minutes=3)])
    assert held(found) == dict.fromkeys((*LATER, DEFINITION))


def test_a_custom_resource_of_elsewhere_keeps_it_for_a_while() -> None:
    found = holds()
    found.add(Stage.CUSTOM_RESOURCES, [awaited(OTHER, minutes=3)])
    assert held(found) == dict.fromkeys((*LATER, DEFINITION), timedelta(minutes=7))


@pytest.mark.parametrize("kind", [OTHER, "v1 Secret"])
def test_nothing_is_kept_for_longer(kind: str) -> None:
    found = holds()
    found.add(Stage.CUSTOM_RESOURCES if kind == OTHER else Stage.FINALIZED, [awaited(kind, minutes=10)])
    assert held(found) == {}


def test_what_can_not_be_deleted_keeps_others_for_a_while_and_no_api_service() -> None:
    found = holds()
    found.add(Stage.CUSTOM_RESOURCES, [awaited(OWN, minutes=3, failed=True)])
    kept = tuple(kind for kind in (*LATER, DEFINITION) if not kind.endswith("APIService"))
    assert held(found) == dict.fromkeys(kept, timedelta(minutes=7))


def test_finalizers_of_others_keep_workloads_and_what_these_need() -> None:
    found = holds()
    found.add(Stage.FINALIZED, [awaited("v1 Secret", minutes=3)])
    assert held(found) == dict.fromkeys((*LATER, DEFINITION), timedelta(minutes=7))


def test_without_workloads_they_keep_nothing_but_definitions() -> None:
    found = holds(has_workloads=False)
    found.add(Stage.FINALIZED, [awaited("v1 Secret", minutes=3)])
    assert held(found) == {DEFINITION: timedelta(minutes=7)}


def test_without_workloads_custom_resources_keep_what_they_may_refer_to() -> None:
    found = holds(has_workloads=False)
    found.add(Stage.CUSTOM_RESOURCES, [awaited(OWN)])
    assert held(found, ("v1 Secret", "v1 Namespace")) == {"v1 Secret": None, "v1 Namespace": None}


def test_workloads_keep_what_they_use_and_definitions() -> None:
    found = holds()
    found.add(Stage.WORKLOADS, [awaited(DEPLOYMENT, minutes=3)])
    kept = ("v1 ConfigMap", f"{RBAC} ClusterRole", DEFINITION)
    assert held(found) == dict.fromkeys(kept, timedelta(minutes=7))


def test_nothing_is_kept_if_the_configuration_states_so() -> None:
    found = holds(timeout=timedelta(0))
    for stage, kind in ((Stage.CUSTOM_RESOURCES, OWN), (Stage.FINALIZED, "v1 Secret"), (Stage.WORKLOADS, DEPLOYMENT)):
        found.add(stage, [awaited(kind)])
    assert held(found) == {}


def test_the_object_whose_finalizer_is_known_is_named() -> None:
    found = holds()
    found.add(Stage.CUSTOM_RESOURCES, [awaited(OTHER), awaited(OWN, held_by="waits for example.com/hold")])
    hold = found.hold_of(reference(DEPLOYMENT, "ns/n"), Stage.WORKLOADS)
    assert hold is not None
    assert hold.text == 'kept until "own.example.com/v1/Bucket/ns/a" and 1 more are gone, which may need it'
    assert hold.details == '"own.example.com/v1/Bucket/ns/a" waits for example.com/hold'
