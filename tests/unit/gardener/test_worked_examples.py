"""Whole examples: what a pass makes of given input, from the Secret to the status."""

from typing import Any

import pytest

from gardener.keys import MANAGED_BY
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.inventory import Inventory
from gardener.managed_resource.merge import Overwrite, merge
from gardener.managed_resource.messages import decoding_message, pending_message, pending_text
from gardener.managed_resource.order import in_stages
from gardener.managed_resource.references import (
    in_its_namespace,
    reference_of,
    secrets_checksum,
    sorted_references,
)
from gardener.managed_resource.stamps import inject_labels, injected_labels
from kit.objects import config_map, obj, reference
from kube.objects import Key, Object

A_YAML = b"""apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  namespace: demo
data:
  k: v
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  namespace: demo
data:
  k: w
"""
B_JSON = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"demo"}}'
GARDENER = {MANAGED_BY: "gardener"}


def put(manifest: Object, live: Object, **options: Any) -> Object:
    return merge(manifest, live, origin="ctl/app", **options)


def test_checksum_references_and_order() -> None:
    data = {"b.json": B_JSON, "a.yaml": A_YAML}
    assert (len(A_YAML), len(B_JSON)) == (172, 65)
    decoded = decode_secrets([(Key("ctl", "s"), data)]).objects
    labels = injected_labels({"team": "red"}, managed_by="gardener")
    objects = [in_its_namespace(d.object, namespaced=d.object["kind"] != "Namespace") for d in decoded]
    assert secrets_checksum(data[d.data_key] for d in decoded) == (
        "39d66a4ed3dc7926b9ee73063a7dd48d81845e6346ae11efee23c5284250530b"
    )
    stages = [[o["metadata"]["name"] for o in stage] for stage in in_stages(objects, lambda o: o)]
    assert stages == [["demo"], ["one", "two"]]
    red = {"team": "red", **GARDENER}
    assert sorted_references(reference_of(o, injected_labels=labels) for o in objects) == [
        *(reference("v1 ConfigMap", f"demo/{name}", labels=red) for name in ("one", "two")),
        {"apiVersion": "v1", "kind": "Namespace", "name": "demo", "labels": red},
    ]


@pytest.mark.parametrize(
    ("overwrite", "expected"),
    [(False, {"app": "web", "env": "y", "note": "mine", **GARDENER}), (True, {"app": "web", **GARDENER})],
)
def test_labels_are_merged_in_three_ways(overwrite: bool, expected: dict[str, str]) -> None:
    manifest = config_map("n", labels={"app": "web"})
    live = config_map("n", labels={"app": "old", "tier": "a", "env": "y", "note": "mine"})
    previous = {"labels": {"app": "web", "tier": "a", "env": "x", **GARDENER}}
    result = put(inject_labels(manifest, GARDENER), live, previous=previous, overwrite=Overwrite(labels=overwrite))
    assert result["metadata"]["labels"] == expected


def test_of_the_node_ports_the_last_match_wins() -> None:
    def service(**spec: Any) -> Object:
        return obj("v1 Service", "s", spec={"type": "LoadBalancer", **spec})

    ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 443, "nodePort": 30002}]
    live = service(clusterIP="10.0.0.7", ports=ports)
    manifest = service(clusterIP="10.9.9.9", ports=[{"name": "b", "port": 80}])
    expected = service(clusterIP="10.0.0.7", ports=[{"name": "b", "port": 80, "nodePort": 30002}])
    assert put(manifest, live)["spec"] == expected["spec"]


@pytest.mark.parametrize("value", ["true", "True"])
def test_replicas_and_resources_are_preserved(value: str) -> None:
    def deployment(replicas: int, resources: Object, **meta: Any) -> Object:
        template = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        return obj("apps/v1 Deployment", "d", spec={"replicas": replicas, "template": template}, **meta)

    manifest = deployment(
        2,
        {"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}, "limits": {"memory": "1Gi"}},
        annotations={"resources.gardener.cloud/preserve-resources": value},
    )
    live = deployment(7, {"requests": {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "2Gi"}})
    spec = put(manifest, live, horizontally_scaled=True)["spec"]
    assert spec["replicas"] == 7
    requests = {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "1Gi"}
    kept = {"requests": requests, "limits": {"memory": "1Gi"}}
    assert spec["template"]["spec"]["containers"] == [{"name": "c", "resources": kept}]


def test_a_stuck_removal_is_told() -> None:
    text = pending_text("v1/ConfigMap/demo/x")
    assert pending_message([("/ConfigMap/demo/x", text)]) == (
        "Could not clean all old resources: 1 error occurred: "
        'deletion of old resource "v1/ConfigMap/demo/x" is still pending'
    )


M_YAML = b"""---
# only a comment
---
- apiVersion: v1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: z}
data: {flag: yes, mode: 0644, day: 2024-01-02}
"""


def test_a_list_at_the_top_is_an_error_at_its_index() -> None:
    result = decode_secrets([(Key("ctl", "s"), {"m.yaml": M_YAML})])
    (item,) = result.objects
    assert item.index == 2
    assert item.object["data"] == {"flag": True, "mode": 420, "day": "2024-01-02"}
    assert decoding_message([str(error) for error in result.errors]) == (
        "Could not decode all new resources: [Could not decode resource at index 1 in 'm.yaml' in secret 'ctl/s': "
        "the document is a list, but must be an object (a mapping).]"
    )


def test_an_object_that_can_not_be_decoded_any_more_is_unwanted_but_known() -> None:
    known = reference_of(config_map("demo/b"), injected_labels={})
    inventory = Inventory([known], Equivalences())
    result = decode_secrets([(Key("ctl", "s"), {"m.yaml": b": : {"})])
    assert (result.objects, len(result.errors)) == ([], 1)
    assert inventory.unwanted() == [known]
