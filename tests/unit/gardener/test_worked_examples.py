"""Whole examples: what a pass makes of given input, from the Secret to the status."""

from typing import Any

import pytest

from gardener.keys import MANAGED_BY
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.inventory import Inventory
from gardener.managed_resource.merge import merge
from gardener.managed_resource.messages import decoding_message
from gardener.managed_resource.order import in_stages
from gardener.managed_resource.references import in_its_namespace, reference_of, secrets_checksum, sorted_references
from gardener.managed_resource.stamps import injected_labels
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
    spec = merge(manifest, live, origin="ctl/app", horizontally_scaled=True)["spec"]
    assert spec["replicas"] == 7
    requests = {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "1Gi"}
    kept = {"requests": requests, "limits": {"memory": "1Gi"}}
    assert spec["template"]["spec"]["containers"] == [{"name": "c", "resources": kept}]


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
