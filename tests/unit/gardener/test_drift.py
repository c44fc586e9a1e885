"""When an object has to be written: plainly compared, and with regard to who made the difference."""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from gardener.keys import FIELD_MANAGER
from kube import differences
from kube.differences import content_hash, needs_update
from kube.objects import Object

is_drifted = partial(differences.is_drifted, field_manager=FIELD_MANAGER)

# --- plain comparison


@pytest.mark.parametrize(
    ("merged", "live", "differs"),
    [
        *(({"a": 1}, {"a": same}, False) for same in (1, 1.0)),
        *(({"a": ours}, {"a": other}, True) for ours, other in ((1, True), (0, False), ("1", 1))),
        ({"a": None}, {}, True),
        ({"a": []}, {}, True),
        ({"a": {}}, {}, True),
        *(({"a": [1, 2]}, {"a": other}, True) for other in ([1], [2, 1])),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1.0}]}}, False),
        ({"a": {"b": 1}}, {"a": [1]}, True),
        ({"a": [1]}, {"a": {"b": 1}}, True),
        ({}, {"a": 1}, True),
        ({"metadata": {"name": "n"}}, {"metadata": {"name": "n", "managedFields": [{}]}}, False),
        ({"metadata": {"name": "n"}}, {"metadata": {"name": "n", "labels": {}}}, True),
    ],
)
def test_plainly_objects_are_equal_if_their_json_is(merged: Object, live: Object, differs: bool) -> None:
    assert needs_update(merged, live) is differs


BASE: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "n", "labels": {"a": "b"}, "resourceVersion": "1", "uid": "u"},
    "data": {"k": "v"},
}


@pytest.mark.parametrize(
    "meta",
    [
        *(
            {"resourceVersion": "2"},
            {"generation": 2},
            {"uid": "w"},
            {"creationTimestamp": "t"},
            {"managedFields": [{}]},
        ),
        *({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}, {"selfLink": "x"}),
    ],
)
def test_the_hash_does_not_see_what_the_api_server_counts(meta: Object) -> None:
    assert content_hash({**BASE, "metadata": {**BASE["metadata"], **meta}}) == content_hash(BASE)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"k": "w"}},
        {"data": {}},
        {"extra": None},
        {"metadata": {**BASE["metadata"], "labels": {}}},
        {"metadata": {**BASE["metadata"], "finalizers": ["x"]}},
    ],
)
def test_the_hash_sees_all_else(change: Object) -> None:
    assert content_hash({**BASE, **change}) != content_hash(BASE)


def test_the_hash_sees_neither_status_nor_the_order_of_fields() -> None:
    turned = {**dict(reversed(BASE.items())), "status": {"x": 1}}
    assert content_hash(turned) == content_hash(BASE)
    assert len(content_hash(BASE)) == 16


# --- who made the difference

OURS = {"manager": "gardener-resource-manager", "operation": "Update", "apiVersion": "apps/v1"}

MANIFEST: Object = yaml.safe_load("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns, labels: {app: x}}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {creationTimestamp: null, labels: {app: x}}
    spec:
      containers:
      - name: c
        image: img:1
        args: [--a, --b]
        resources: {requests: {cpu: 1000m}, limits: {}}
        ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
        livenessProbe: {httpGet: {path: /, port: '80'}}
      nodeSelector: {}
      volumes: null
""")

# As the API server stores and records it after a write by us.
LIVE: Object = yaml.safe_load("""
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: ns
  labels: {app: x}
  annotations: {deployment.kubernetes.io/revision: '1'}
  resourceVersion: '7'
  generation: 1
  managedFields:
  - manager: gardener-resource-manager
    operation: Update
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {.: {}, f:app: {}}}
      f:spec:
        f:progressDeadlineSeconds: {}
        f:replicas: {}
        f:selector: {}
        f:strategy: {f:rollingUpdate: {.: {}, f:maxSurge: {}}, f:type: {}}
        f:template:
          f:metadata: {f:labels: {.: {}, f:app: {}}}
          f:spec:
            f:containers:
              'k:{"name":"c"}':
                .: {}
                f:args: {}
                f:image: {}
                f:imagePullPolicy: {}
                f:livenessProbe: {.: {}, f:httpGet: {.: {}, f:path: {}, f:port: {}, f:scheme: {}}}
                f:name: {}
                f:ports:
                  .: {}
                  'k:{"containerPort":80,"protocol":"TCP"}': {.: {}, f:containerPort: {}, f:protocol: {}}
                  'k:{"containerPort":53,"protocol":"UDP"}': {.: {}, f:containerPort: {}, f:protocol: {}}
                f:resources: {.: {}, f:requests: {.: {}, f:cpu: {}}}
            f:dnsPolicy: {}
            f:schedulerName: {}
  - manager: kube-controller-manager
    operation: Update
    apiVersion: apps/v1
    subresource: status
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:annotations: {.: {}, f:deployment.kubernetes.io/revision: {}}}
      f:status: {f:replicas: {}}
spec:
  progressDeadlineSeconds: 600
  replicas: 2
  selector: {matchLabels: {app: x}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: c
        image: img:1
        imagePullPolicy: IfNotPresent
        args: [--a, --b]
        resources: {requests: {cpu: '1'}}
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 53, protocol: UDP}]
        livenessProbe: {httpGet: {path: /, port: 80, scheme: HTTP}}
      dnsPolicy: ClusterFirst
      schedulerName: default-scheduler
status: {replicas: 2}
""")


def merged() -> Object:
    meta = {name: value for name, value in LIVE["metadata"].items() if name != "managedFields"}
    return {**deepcopy(MANIFEST), "metadata": deepcopy(meta), "status": {"replicas": 2}}


def changed(path: str, value: Any, fields: Object | None, *, live: Object = LIVE, **entry: str) -> Object:
    """The live object after `kubectl` set (or, for None, removed) what is at the path, owning these fields then."""
    result = deepcopy(live)
    at: Any = result
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in way:
        at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
    if value is None:
        del at[last]
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value
    if fields:
        foreign = {"manager": "kubectl", "operation": "Update", "apiVersion": result["apiVersion"], **entry}
        result["metadata"]["managedFields"].append({**foreign, "fieldsV1": fields})
    return result


def test_defaults_and_rewritten_values_of_our_own_write_are_no_drift() -> None:
    assert needs_update(merged(), LIVE)
    assert not is_drifted(merged(), LIVE)


def in_container(fields: Object) -> Object:
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': fields}}}}}


CONTAINER = "spec/template/spec/containers/0"


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        ("spec/replicas", 5, {"f:spec": {"f:replicas": {}}}),
        ("spec/paused", True, {"f:spec": {"f:paused": {}}}),
        ("spec/strategy/type", "Recreate", {"f:spec": {"f:strategy": {"f:type": {}}}}),
        ("spec/strategy/rollingUpdate/maxUnavailable", 1, {"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxUnavailable": {}}}}}),
        ("spec/selector/matchLabels/y", "z", {"f:spec": {"f:selector": {}}}),
        ("metadata/labels/app", "y", {"f:metadata": {"f:labels": {"f:app": {}}}}),
        ("metadata/labels/new", "y", {"f:metadata": {"f:labels": {"f:new": {}}}}),
        (f"{CONTAINER}/image", "img:2", in_container({"f:image": {}})),
        (f"{CONTAINER}/imagePullPolicy", "Always", in_container({"f:imagePullPolicy": {}})),
        (f"{CONTAINER}/args", ["--a"], in_container({"f:args": {}})),
        (f"{CONTAINER}/args/2", "--c", in_container({"f:args": {}})),
        (f"{CONTAINER}/resources/requests/cpu", "2", in_container({"f:resources": {"f:requests": {"f:cpu": {}}}})),
        (f"{CONTAINER}/resources/limits", {"cpu": "2"}, in_container({"f:resources": {"f:limits": {".": {}, "f:cpu": {}}}})),
        (f"{CONTAINER}/livenessProbe/httpGet/port", 81, in_container({"f:livenessProbe": {"f:httpGet": {"f:port": {}}}})),
        (
            f"{CONTAINER}/ports/2",
            {"containerPort": 90, "protocol": "TCP"},
            in_container({"f:ports": {'k:{"containerPort":90,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}}),
        ),
        (f"{CONTAINER}/ports/0/name", "x", in_container({"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {"f:name": {}}}})),
        (
            "spec/template/spec/containers/1",
            {"name": "s", "image": "s:1"},
            {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"s"}': {".": {}, "f:image": {}, "f:name": {}}}}}}},
        ),
        ("spec/template/spec/volumes", [{"name": "v"}], {"f:spec": {"f:template": {"f:spec": {"f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}}}}}}}),
        ("spec/template/spec/nodeSelector", {"x": "y"}, {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}),
        # removals leave no trace of who did it
        ("spec/replicas", None, None),
        ("metadata/labels/app", None, None),
        (f"{CONTAINER}/args", None, None),
        (f"{CONTAINER}/args/1", None, None),
        (f"{CONTAINER}/ports/1", None, None),
        (f"{CONTAINER}/ports", None, None),
        ("spec/template/spec/containers/0", None, None),
    ],
)  # fmt: skip
def test_what_another_client_set_or_removed_is_drift(path: str, value: Any, fields: Object | None) -> None:
    assert is_drifted(merged(), changed(path, value, fields))


@pytest.mark.parametrize(
    ("path", "value", "fields", "entry"),
    [
        # another client owns it as well, but the value is ours
        ("spec/replicas", 2, {"f:spec": {"f:replicas": {}}}, {}),
        (f"{CONTAINER}/args", ["--a", "--b"], in_container({"f:args": {}}), {}),
        # the status is not compared
        ("status/replicas", 9, {"f:status": {"f:replicas": {}}}, {"subresource": "status"}),
        ("status/replicas", 9, {"f:status": {"f:replicas": {}}}, {}),
        # our own write, with what admission made of it
        ("spec/template/spec/volumes", [{"name": "v"}], None, {}),
        (f"{CONTAINER}/args/2", "--injected", None, {}),
        ("spec/progressDeadlineSeconds", 700, None, {}),
        # a default that we own
        ("spec/strategy", None, None, {}),
    ],
)
def test_what_is_as_we_wrote_it_is_no_drift(path: str, value: Any, fields: Object | None, entry: Object) -> None:
    assert not is_drifted(merged(), changed(path, value, fields, **entry))


def test_a_scaling_through_the_subresource_is_drift_unless_replicas_are_preserved() -> None:
    live = changed("spec/replicas", 5, {"f:spec": {"f:replicas": {}}}, subresource="scale")
    assert is_drifted(merged(), live)
    preserved = merged()
    preserved["spec"]["replicas"] = 5
    assert not is_drifted(preserved, live)


def test_an_apply_under_our_name_is_not_our_write() -> None:
    live = changed("spec/paused", True, {"f:spec": {"f:paused": {}}}, manager=OURS["manager"], operation="Apply")
    assert is_drifted(merged(), live)


def test_the_order_of_items_counts() -> None:
    live = deepcopy(LIVE)
    live["spec"]["template"]["spec"]["containers"][0]["ports"].reverse()
    assert is_drifted(merged(), live)


@pytest.mark.parametrize("entries", [None, [], [{**OURS, "apiVersion": "apps/v1beta1", "fieldsV1": {"f:spec": {}}}]])
def test_without_a_record_every_difference_is_drift(entries: list[Object] | None) -> None:
    live = deepcopy(LIVE)
    live["metadata"]["managedFields"] = entries
    assert is_drifted(merged(), live)
    same = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    assert not is_drifted({**live, "metadata": same}, live)


def test_an_owner_that_a_user_added_is_drift() -> None:
    owner = {"uid": "u", "kind": "X", "name": "x", "apiVersion": "v1"}
    fields: Any = {"f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}}}}
    live = changed("metadata/ownerReferences", [owner], fields)
    assert is_drifted(merged(), live)


def secret(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


def live_secret(data: Object, **foreign: Object) -> Object:
    ours = {**OURS, "apiVersion": "v1", "fieldsV1": {"f:data": {".": {}, "f:k": {}}, "f:type": {}}}
    others = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": foreign}}
    meta = {"name": "s", "managedFields": [ours, others] if foreign else [ours]}
    return {**secret(data=data, type="Opaque"), "metadata": meta}


@pytest.mark.parametrize(
    ("live", "drifted"),
    [
        (live_secret({"k": "dg==", "b": "dw=="}), False),
        (live_secret({"k": "eA==", "b": "dw=="}, **{"f:k": {}}), True),
        (live_secret({"b": "dw=="}), True),
        (live_secret({"k": "dg==", "b": "dw==", "c": "eA=="}, **{"f:c": {}}), True),
    ],
)
def test_the_string_data_of_a_secret_is_looked_for_in_its_data(live: Object, drifted: bool) -> None:
    assert is_drifted(secret(stringData={"k": "v"}, data={"b": "dw=="}), live) is drifted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=10,
)
FIELDS: st.SearchStrategy[Any] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(
        st.sampled_from([".", "f:spec", "f:x", "f:y", 'k:{"x":"a"}', 'k:{"x":1,"y":2}', "i:0", 'v:"a"']), inner, max_size=3
    ),
)  # fmt: skip


# Items that are known by a field, as others have written, and are no mappings.
@example([{"y": "b"}, [2]], [{"y": "b"}, [2]], {}, {"f:spec": {'k:{"x":"a"}': {}}})
@given(JSON, JSON, FIELDS, FIELDS)
def test_comparing_never_raises_and_equals_never_drift(wanted: Any, present: Any, ours: Object, others: Object) -> None:
    entries = [
        {"manager": "gardener-resource-manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": ours},
        {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsV1": others},
    ]
    live = {"apiVersion": "v1", "metadata": {"managedFields": entries}, "spec": present}
    manifest = {"apiVersion": "v1", "metadata": {}, "spec": wanted}
    is_drifted(manifest, live)
    if not needs_update(manifest, live):
        assert not is_drifted(manifest, live)


@pytest.mark.parametrize(
    ("api_version", "field", "value", "drifted"),
    [
        ("apps/v1", "minReadySeconds", 0, False),
        ("v1", "hostNetwork", False, False),
        ("apps/v1", "minReadySeconds", 5, True),
        ("v1", "text", "", True),
        ("example.com/v1", "enabled", False, True),
        ("gateway.networking.k8s.io/v1", "weight", 0, True),
    ],
)
def test_zeros_that_the_api_server_does_not_store(api_version: str, field: str, value: Any, drifted: bool) -> None:
    ours = {"manager": "gardener-resource-manager", "operation": "Update", "apiVersion": api_version}
    fields = {**ours, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:kept": {}}}}
    live: Object = {
        "apiVersion": api_version,
        "kind": "Thing",
        "metadata": {"name": "n", "managedFields": [fields]},
        "spec": {"kept": 1},
    }
    merged = {**live, "metadata": {"name": "n"}, "spec": {"kept": 1, field: value}}
    assert is_drifted(merged, live) is drifted
