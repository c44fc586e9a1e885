"""The one word for the state of a ManagedResource, and the message that explains it."""

import pytest

from gardener.overview.states import (
    ResourceState,
    StateFilter,
    brief,
    message_of,
    object_count,
    state_of,
    suspension,
    without_false_namespaces,
)
from kit.objects import conditions, managed_resource
from kube.objects import Object


def managed(*, reason: str = "R", observed: int = 1, metadata: Object | None = None, **statuses: str) -> Object:
    reported = [{**each, "reason": reason, "message": f"about {each['type']}"} for each in conditions(**statuses)]
    status = {"observedGeneration": observed}
    return managed_resource("garden/shop", generation=1, conditions=reported, status=status, **(metadata or {}))


IGNORED = {"annotations": {"resources.gardener.cloud/ignore": "true"}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("obj", "state", "message"),
    [
        (managed(), ResourceState.READY, ""),
        (managed(applied="", healthy="", progressing=""), ResourceState.PENDING, "no agent has processed it yet"),
        (managed(applied="False"), ResourceState.FAILED, "R: about ResourcesApplied"),
        (managed(applied="False", healthy="False"), ResourceState.FAILED, "R: about ResourcesApplied"),
        (managed(applied="Progressing"), ResourceState.PROGRESSING, "R: about ResourcesApplied"),
        (managed(healthy="False"), ResourceState.UNHEALTHY, "R: about ResourcesHealthy"),
        (managed(healthy="False", progressing="True"), ResourceState.UNHEALTHY, "R: about ResourcesHealthy"),
        (managed(healthy="Unknown"), ResourceState.PROGRESSING, "R: about ResourcesHealthy"),
        (managed(progressing="True"), ResourceState.PROGRESSING, "R: about ResourcesProgressing"),
        (managed(observed=0), ResourceState.PROGRESSING, "the last change of its spec is not applied yet"),
        (managed(metadata=IGNORED), ResourceState.SUSPENDED, "no reason is recorded"),
        (
            managed(reason="ManagedResourceIgnored"),
            ResourceState.PROGRESSING,
            "no agent has processed it since it was resumed",
        ),
        (managed(metadata=DELETED), ResourceState.DELETING, "R: about ResourcesApplied"),
        (managed(metadata={**DELETED, **IGNORED}), ResourceState.DELETING, "R: about ResourcesApplied"),
    ],
)
def test_the_state_follows_from_conditions_and_metadata(obj: Object, state: ResourceState, message: str) -> None:
    assert (state_of(obj), message_of(obj)) == (state, message)


def test_failed_stands_for_all_that_does_not_get_right_by_itself() -> None:
    assert {state for state in ResourceState if StateFilter.FAILED.includes(state)} == {
        ResourceState.FAILED,
        ResourceState.UNHEALTHY,
    }
    assert {state for state in ResourceState if StateFilter.READY.includes(state)} == {ResourceState.READY}


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ({"reason": "why not"}, "why not"),
        ({"by": "ann"}, "by ann"),
        ({"by": "ann", "since": "T", "reason": "why not"}, "by ann since T: why not"),
    ],
)
def test_a_suspension_is_reported_as_far_as_it_was_written_down(notes: dict[str, str], text: str) -> None:
    names = {"reason": "ignore-reason", "by": "ignored-by", "since": "ignored-since"}
    annotations = {f"resources.gardener.cloud/{names[name]}": value for name, value in notes.items()}
    assert suspension(managed(metadata={"annotations": annotations})) == text


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("ApplyFailed: it is so", "ApplyFailed: it is so"),
        ("DecodingFailed: Could not decode all new resources: [line 4: no]", "DecodingFailed: line 4: no"),
        ("DeletionPending: Could not clean all old resources: 1 error occurred: a\n\nb", "DeletionPending: a b"),
        ("X: Could not apply all new resources: 2 errors occurred: [a, b]", "X: a, b"),
        ("X: Could not apply all new resources: 2 errors occurred: [a: [b], c: [d]]", "X: a: [b], c: [d]"),
        ("X: Could not apply all new resources: 1 error occurred: a: [b]", "X: a: [b]"),
        (
            'ApplyFailed: error during apply of object "apps/v1/Deployment/shop/c": Deployment.apps "c" is invalid: no',
            "ApplyFailed: Deployment/shop/c: invalid: no",
        ),
        (
            'ApplyFailed: error during apply of object "v1/Namespace/shop": no matches for kind "Namespace"',
            'ApplyFailed: Namespace/shop: no matches for kind "Namespace"',
        ),
        (
            "X: Could not decode all new resources: [Could not decode resource at index 0 in 'a.yaml' in secret 'b/c': no.]",
            "X: index 0 in 'a.yaml' in secret 'b/c': no.",
        ),
        ("", ""),
    ],
)
def test_a_brief_message_has_the_cause_first(message: str, short: str) -> None:
    assert brief(message) == short


def test_what_an_unfinished_pass_has_announced_counts() -> None:
    one, two = ({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name} for name in "ab")
    assert object_count({"status": {"resources": [one], "pendingResources": [one, two]}}) == 2
    assert object_count({}) == 0


def test_cluster_scoped_objects_are_named_without_a_namespace() -> None:
    listed = [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "system:shop"},
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "shop"},
    ]
    message = '"rbac.authorization.k8s.io/v1/ClusterRole/default/system:shop": no; "v1/ConfigMap/default/shop": no'
    expected = '"rbac.authorization.k8s.io/v1/ClusterRole/system:shop": no; "v1/ConfigMap/default/shop": no'
    assert without_false_namespaces(message, listed) == expected
    obj = managed(applied="False")
    obj["status"] |= {"resources": listed}
    obj["status"]["conditions"][0]["message"] = message
    assert message_of(obj) == f"R: {expected}"
