"""What every object gets, whatever its kind."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener import keys
from gardener.managed_resource.merge import Overwrite, merge, merge_ignored, three_way
from kit import objects
from kube.objects import Object

Map = dict[str, str]
STAMPS = {keys.ORIGIN: "ns/mr", keys.DESCRIPTION: keys.DESCRIPTION_TEXT}


def config_map(content: Object | None = None, **meta: Any) -> Object:
    return objects.config_map("n", **meta, **(content or {}))


def merged(manifest: Object, live: Object | None, **options: Any) -> Object:
    before = deepcopy((manifest, live))
    result = merge(manifest, live, origin="ns/mr", **options)
    assert (manifest, live) == before
    return result


def test_a_new_object_is_the_manifest_with_stamps() -> None:
    manifest = config_map({"data": {"k": "v"}, "status": {"x": 1}}, labels={"a": "b"}, finalizers=["x/y"])
    assert merged(manifest, None) == config_map(
        {"data": {"k": "v"}, "status": {"x": 1}}, labels={"a": "b"}, finalizers=["x/y"], annotations=STAMPS
    )


def test_outside_of_metadata_and_status_all_is_the_manifests() -> None:
    manifest = config_map({"data": {"k": "v"}, "status": {"x": 1}})
    live = config_map({"data": {"k": "w", "l": "m"}, "binaryData": {}, "status": {"y": 2}}, uid="u")
    assert merged(manifest, live) == config_map({"data": {"k": "v"}, "status": {"y": 2}}, uid="u", annotations=STAMPS)


@pytest.mark.parametrize("status", [None, {}])
def test_the_status_of_a_manifest_is_never_written_over_a_live_one(status: Object | None) -> None:
    assert "status" not in merged(config_map({"status": {"x": 1}}), config_map({"status": status}))


def test_metadata_is_the_live_one_without_managed_fields() -> None:
    manifest = config_map(finalizers=["a/b"], uid="other", resourceVersion="1")
    live = config_map(finalizers=["c/d"], uid="u", resourceVersion="7", generation=3, managedFields=[{}])
    assert merged(manifest, live)["metadata"] == {
        "name": "n",
        "finalizers": ["c/d"],
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "annotations": STAMPS,
    }


def test_owners_are_the_manifests() -> None:
    mine, foreign = [{"uid": "1"}], [{"uid": "2"}]
    changed = merged(config_map(ownerReferences=mine), config_map(ownerReferences=foreign))
    assert changed["metadata"]["ownerReferences"] == mine
    assert "ownerReferences" not in merged(config_map(), config_map(ownerReferences=foreign))["metadata"]


REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": True}


@pytest.mark.parametrize(
    ("mine", "live", "expected"),
    [
        ([], [REPLICA_SET], [REPLICA_SET]),
        ([{"uid": "1"}], [REPLICA_SET, {"uid": "3"}], [{"uid": "1"}, REPLICA_SET]),
        ([{"uid": "1", "controller": True}], [REPLICA_SET], [{"uid": "1", "controller": True}]),
        ([], [{**REPLICA_SET, "controller": False}], None),
        ([], [{**REPLICA_SET, "apiVersion": "example.com/v1"}], None),
        ([], ["no owner"], None),
    ],
)
def test_a_controller_that_adopted_the_object_stays_its_owner(
    mine: Any, live: Any, expected: list[Object] | None
) -> None:
    result = merged(config_map(ownerReferences=mine), config_map(ownerReferences=live))
    assert result["metadata"].get("ownerReferences") == expected


def test_where_labels_and_annotations_are_replaced_those_of_controllers_of_kubernetes_stay() -> None:
    live = config_map(
        labels={"endpoints.kubernetes.io/managed-by": "endpoint-controller", "app.kubernetes.io/name": "n"},
        annotations={"pv.kubernetes.io/bind-completed": "yes", "kubectl.kubernetes.io/x": "y"},
    )
    result = merged(config_map(), live, overwrite=Overwrite(labels=True, annotations=True))["metadata"]
    assert result["labels"] == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert result["annotations"] == {"pv.kubernetes.io/bind-completed": "yes", **STAMPS}


def test_stamps_override_whatever_there_is() -> None:
    false = {keys.ORIGIN: "else/where", keys.DESCRIPTION: "edit me"}
    result = merged(config_map(annotations=false), config_map(annotations=false))
    assert result["metadata"]["annotations"] == STAMPS


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("live", "kept"), [("ns/other", {keys.CLAIMED_BY: "ns/other"}), ("ns/mr", {}), ("", {}), (None, {})]
)
def test_a_claim_stays_until_it_comes_true(live: str | None, kept: dict[str, str], overwrite: bool) -> None:
    manifest = config_map(annotations={keys.CLAIMED_BY: "ns/forged"})
    present = None if live is None else config_map(annotations={keys.CLAIMED_BY: live})
    options = Overwrite(annotations=overwrite)
    assert merged(manifest, present, overwrite=options) == config_map(annotations={**STAMPS, **kept})


def test_reference_annotations_of_the_live_object_go() -> None:
    prefix = "reference.resources.gardener.cloud/"
    manifest = config_map(annotations={f"{prefix}secret-1": "new"})
    live = config_map(annotations={f"{prefix}secret-0": "old", "x": "y"})
    assert merged(manifest, live)["metadata"]["annotations"] == {f"{prefix}secret-1": "new", "x": "y", **STAMPS}


@pytest.mark.parametrize(
    ("wanted", "live", "previous", "expected"),
    [
        ({}, {}, {}, {}),
        ({"a": "1"}, {}, {}, {"a": "1"}),
        ({"a": "1"}, {"a": "2", "b": "3"}, {}, {"a": "1", "b": "3"}),
        ({}, {"a": "1"}, {"a": "1"}, {}),
        ({}, {"a": "2"}, {"a": "1"}, {"a": "2"}),
        ({}, {}, {"a": "1"}, {}),
        ({"a": "2"}, {"a": "1"}, {"a": "1"}, {"a": "2"}),
        ({"a": "1"}, {"a": "2"}, {"a": "1"}, {"a": "1"}),
    ],
)
def test_maps_are_merged_in_three_ways(wanted: Map, live: Map, previous: Map, expected: Map) -> None:
    assert three_way(wanted, live, previous) == expected


def test_labels_and_annotations_that_were_wanted_before_go() -> None:
    live = config_map(labels={"a": "1", "b": "2"}, annotations={"c": "3", "d": "4"})
    previous = {"labels": {"a": "1"}, "annotations": {"c": "3"}}
    meta = merged(config_map(), live, previous=previous)["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"b": "2"}, {"d": "4", **STAMPS})


def test_no_labels_are_no_field() -> None:
    assert "labels" not in merged(config_map(), config_map(labels={}))["metadata"]


def test_labels_and_annotations_may_be_overwritten() -> None:
    manifest = config_map(labels={"a": "1"}, annotations={"c": "3"})
    live = config_map(labels={"b": "2"}, annotations={"d": "4", "reference.resources.gardener.cloud/secret-0": "x"})
    meta = merged(manifest, live, previous={"labels": {"b": "1"}}, overwrite=Overwrite(labels=True, annotations=True))
    assert (meta["metadata"]["labels"], meta["metadata"]["annotations"]) == ({"a": "1"}, {"c": "3", **STAMPS})


def test_an_ignored_object_is_created_as_it_stands() -> None:
    manifest = config_map(annotations={keys.IGNORE: "true"})
    assert merge_ignored(manifest, None) is manifest


def test_of_an_ignored_object_only_the_description_goes() -> None:
    manifest = config_map({"data": {"k": "v"}}, annotations={keys.IGNORE: "true"})
    live = config_map({"data": {"k": "w"}}, annotations={**STAMPS, "x": "y"}, resourceVersion="7", managedFields=[{}])
    assert merge_ignored(manifest, live) == config_map(
        {"data": {"k": "w"}}, annotations={keys.ORIGIN: "ns/mr", "x": "y"}, resourceVersion="7"
    )
    assert merge_ignored(manifest, config_map(annotations={"x": "y"})) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", "None", "ClusterIP", "NodePort"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(
            ["spec", "template", "metadata", "labels", "annotations", "containers", "name", "resources", "requests",
             "cpu", "ports", "port", "type", "clusterIP", "replicas", "volumeClaimTemplates", "webhooks", "volumes",
             "clientConfig", "caBundle", "conversion", "webhook", "jobTemplate", "claimRef", "tolerations"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from(
    ["apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job", "batch/v1 CronJob",
     "v1 Service", "v1 ServiceAccount", "v1 Pod", "v1 PersistentVolume", "v1 PersistentVolumeClaim", "v1 ConfigMap",
     "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration", "apiregistration.k8s.io/v1 APIService",
     "apiextensions.k8s.io/v1 CustomResourceDefinition"]
)  # fmt: skip
MAPS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)


@given(
    kind=KINDS, specs=st.tuples(VALUES, VALUES), more=VALUES, labels=st.tuples(MAPS, MAPS, MAPS), scaled=st.booleans()
)
def test_merging_a_second_time_changes_nothing_whatever_the_types(
    *, kind: str, specs: tuple[Any, Any], more: Any, labels: tuple[dict[str, str], ...], scaled: bool
) -> None:
    wanted, present, previous = labels
    manifest = objects.obj(kind, "n", labels=wanted, spec=specs[0], webhooks=more)
    live = objects.obj(kind, "n", uid="u", labels=present, spec=specs[1], webhooks=more)
    scaling = {"horizontally_scaled": scaled, "vertically_scaled": scaled}
    options: dict[str, Any] = {"previous": {"labels": previous}, **scaling}
    once = merged(manifest, live, **options)
    assert merged(manifest, once, **options) == once
