"""What a controller acts on goes before the controller: custom resources, then workloads, then what these use."""

import contextlib
import secrets
from collections.abc import Iterator

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.kinds import custom_resource, definition, serve
from kit.objects import Kind, config_map, deployment, obj, role, role_binding, service
from kit.rig import Agent, Rig
from kube.errors import NotFound
from kube.objects import Object, is_deleting
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

_HOLD = "shop.example.com/bucket"
_DEPENDS_ON = "resources.gardener.cloud/depends-on"
_KEPT = "RemovalHeldBack"
_WEBHOOKS = Resource(
    *("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    namespaced=False,
)


@pytest.fixture
def bucket(cluster: Cluster) -> Iterator[Resource]:
    """A kind that only this test has, with its definition, which the ManagedResource is to bring."""
    kind = custom_resource(f"{secrets.token_hex(4)}.example.com", "Bucket")
    yield kind
    with contextlib.suppress(NotFound):
        for each in cluster.api.get(kind.path())["items"]:
            meta = each["metadata"]
            path = kind.path(namespace=meta["namespace"], name=meta["name"])
            cluster.api.patch(path, {"metadata": {"finalizers": None}})
    with contextlib.suppress(NotFound):
        cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=name_of_definition(kind)))


def name_of_definition(kind: Resource) -> str:
    return f"{kind.plural}.{kind.group}"


def operator() -> list[Object]:
    """A workload with all that it needs."""
    return [
        obj("ServiceAccount", "operator"),
        deployment("operator"),
        role("operator"),
        role_binding("operator", to="operator"),
        service("operator"),
        config_map("operator"),
    ]


def hold(rig: Rig, kind: Kind, name: str) -> None:
    """As the operator does that is to see its object go."""
    rig.patch(kind, name, {"metadata": {"finalizers": [_HOLD]}})


def let_go(rig: Rig, kind: Kind, name: str) -> None:
    rig.patch(kind, name, {"metadata": {"finalizers": None}})


def is_kept(rig: Rig, each: Object) -> bool:
    found = rig.find(each["kind"], each["metadata"]["name"])
    return found is not None and not is_deleting(found)


def until_going(rig: Rig, kind: Kind, name: str) -> None:
    rig.until(lambda: is_deleting(rig.get(kind, name)), f"the deletion of {name}")


@pytest.mark.parametrize("dropped", [True, False])
def test_an_operator_stays_whole_until_its_custom_resources_are_gone(
    dropped: bool, rig: Rig, bucket: Resource, audit: Audit
) -> None:
    whole = [*operator(), definition(bucket)]
    rig.apply("mr", *whole, obj(bucket, f"{rig.namespace}/data"), config_map("stays"))
    hold(rig, bucket, "data")
    mark = audit.mark()
    if dropped:
        rig.write_secret("mr", config_map("stays"))
    else:
        rig.delete("ManagedResource", "mr")
    until_going(rig, bucket, "data")
    workload, held = f"apps/v1/Deployment/{rig.namespace}/operator", f"{bucket.api_version}/Bucket/{rig.namespace}/data"
    rig.until_failed(
        "mr",
        f'"{held}" is still pending: waits for {_HOLD}',
        f'"{workload}" is still pending: kept until "{held}" is gone, which may need it; "{held}" waits for {_HOLD}',
        reason="DeletionPending",
    )
    (event,) = rig.until(lambda: [each for each in rig.events("mr") if each["reason"] == _KEPT], "the Event")
    assert workload in event["message"]
    assert f"waits for {_HOLD}" in event["message"]
    assert [each["kind"] for each in whole if not is_kept(rig, each)] == []
    let_go(rig, bucket, "data")
    if dropped:
        rig.until_applied("mr")
    else:
        rig.until_gone("ManagedResource", "mr")
    calls = audit.calls(since=mark, verbs=("delete",))
    order = [call.resource for call in calls if call.user == rig.agent.user and call.namespace in (rig.namespace, "")]
    assert order[0] == bucket.plural
    assert order[-1] == "customresourcedefinitions"
    assert order.index("deployments") < min(order.index("serviceaccounts"), order.index("roles"))
    assert order.count("deployments") == 1


def test_what_others_hold_by_a_finalizer_goes_before_workloads(rig: Rig) -> None:
    rig.apply("mr", *operator(), obj("Secret", "held"))
    hold(rig, "Secret", "held")
    rig.delete("ManagedResource", "mr")
    until_going(rig, "Secret", "held")
    rig.until_failed(
        "mr", f'until "v1/Secret/{rig.namespace}/held" is gone', "for at most 10m", reason="DeletionPending"
    )
    assert [each["kind"] for each in operator() if not is_kept(rig, each)] == []
    let_go(rig, "Secret", "held")
    rig.until_gone("ManagedResource", "mr")


def test_the_order_outlives_the_agent(rig: Rig, bucket: Resource) -> None:
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    rig.write_secret("mr", *operator(), definition(bucket), obj(bucket, f"{rig.namespace}/data"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        rig.until_applied("mr")
        hold(rig, bucket, "data")
        rig.delete("ManagedResource", "mr")
        until_going(rig, bucket, "data")
    with own.start():
        rig.until_failed("mr", "kept until", reason="DeletionPending")
        assert [each["kind"] for each in operator() if not is_kept(rig, each)] == []
        let_go(rig, bucket, "data")
        rig.until_gone("ManagedResource", "mr")


@pytest.mark.parametrize("timeout", ["0s", "2s"])
def test_a_custom_resource_without_operator_holds_workloads_for_a_limited_time(
    timeout: str, rig: Rig, bucket: Resource
) -> None:
    """Its kind is defined elsewhere, and so its operator is, if there is one."""
    settings = {"syncPeriod": "15s", "workloadRemovalTimeout": timeout}
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}", managedResource=settings)
    serve(rig.cluster, bucket)
    rig.write_secret("mr", *operator(), obj(bucket, f"{rig.namespace}/data"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        rig.until_applied("mr")
        hold(rig, bucket, "data")
        rig.delete("ManagedResource", "mr")
        for each in operator():
            rig.until_gone(each["kind"], each["metadata"]["name"])
        rig.until_failed("mr", f"waits for {_HOLD}", reason="DeletionPending")
        let_go(rig, bucket, "data")
        rig.until_gone("ManagedResource", "mr")


@pytest.mark.parametrize("depends_on", ["operator", "base"])
def test_the_order_holds_among_those_that_dependencies_join(depends_on: str, rig: Rig, bucket: Resource) -> None:
    """Be it that the objects depend on their operator, or only both on what defines their kind."""
    rig.apply("base", definition(bucket))
    rig.write("operator", *operator(), annotated={_DEPENDS_ON: "base"})
    rig.write("objects", obj(bucket, f"{rig.namespace}/data"), annotated={_DEPENDS_ON: depends_on})
    rig.until_applied("operator")
    rig.until_applied("objects")
    hold(rig, bucket, "data")
    for name in ("base", "operator", "objects"):
        rig.delete("ManagedResource", name)
    until_going(rig, bucket, "data")
    rig.until_failed("objects", f"waits for {_HOLD}", reason="DeletionPending")
    message = rig.until_failed("operator", f"{rig.namespace}/objects", f"waits for {_HOLD}", reason="DeletionPending")
    if depends_on == "base":
        assert f'Bucket/{rig.namespace}/data" of ManagedResource {rig.namespace}/objects is gone' in message
    assert [each["kind"] for each in [*operator(), definition(bucket)] if not is_kept(rig, each)] == []
    let_go(rig, bucket, "data")
    for name in ("objects", "operator", "base"):
        rig.until_gone("ManagedResource", name)


def test_an_operator_stays_while_objects_go_with_the_definition_of_their_kind(rig: Rig, bucket: Resource) -> None:
    """They are not of the ManagedResource, but nothing is left of them without their kind."""
    rig.apply("mr", *operator(), definition(bucket))
    rig.create(obj(bucket, f"{rig.namespace}/data", finalizers=[_HOLD]), bucket)
    rig.delete("ManagedResource", "mr")
    until_going(rig, bucket, "data")
    text = f'kept until "apiextensions.k8s.io/v1/CustomResourceDefinition/default/{name_of_definition(bucket)}" is gone'
    rig.until_failed("mr", text, reason="DeletionPending")
    assert [each["kind"] for each in operator() if not is_kept(rig, each)] == []
    let_go(rig, bucket, "data")
    rig.until_gone("ManagedResource", "mr")


def test_a_webhook_that_does_not_answer_does_not_keep_custom_resources(rig: Rig, bucket: Resource) -> None:
    webhook = {
        "name": "buckets.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"namespace": rig.namespace, "name": "operator"}},
        "rules": [{"apiGroups": [bucket.group], "apiVersions": ["*"], "resources": ["*"], "operations": ["DELETE"]}],
    }
    name = f"{bucket.group}-buckets"
    configuration = obj(_WEBHOOKS, name, webhooks=[webhook])
    rig.apply("mr", *operator(), definition(bucket), obj(bucket, f"{rig.namespace}/data"), configuration)
    rig.delete_managed_resource("mr")
    assert rig.find(_WEBHOOKS, name) is None
