"""Classes, annotations that steer the agent, and what a restart and doing nothing cost."""

import time
from collections.abc import Iterator

import pytest

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kit.kinds import custom_resource, definition
from kit.managed_resources import with_gated_field, with_unknown_field
from kit.objects import (
    CONTAINERS,
    account,
    config_map,
    deployment,
    obj,
    role,
    role_binding,
    rule,
    secret,
    service,
    stateful_set,
)
from kit.processes.agent import AgentProcess
from kit.rig import Agent, Rig, stamped_by
from kube.objects import Object, annotations, condition, finalizers
from kube.resources import CLUSTER_ROLES, CUSTOM_RESOURCE_DEFINITIONS, JOBS, NAMESPACES, SERVICE_ACCOUNTS

_OPERATION = "gardener.cloud/operation"
_IGNORE = "resources.gardener.cloud/ignore"
_FINALIZER = "resources.gardener.cloud/gardener-resource-manager"
_SYNC_SECONDS = 4


# --- the conditions


def test_what_is_applied_is_reported_together_with_its_health(rig: Rig) -> None:
    rig.write("mr", config_map("c"), role("r"))

    def applied() -> Object | None:
        found = rig.get("ManagedResource", "mr")
        return found if (condition(found, "ResourcesApplied") or {}).get("status") == "True" else None

    reported = rig.until(applied, "it to be applied")
    assert reported is not None
    assert (condition(reported, "ResourcesHealthy") or {}).get("status") == "True"
    assert (condition(reported, "ResourcesProgressing") or {}).get("status") == "False"


# --- classes


@pytest.fixture(scope="module")
def other_agent(own_agent: Agent, cluster: Cluster) -> Agent:
    return Agent(cluster, resource_class=f"{own_agent.resource_class}-other")


@pytest.fixture(scope="module")
def other_process(other_agent: Agent) -> Iterator[AgentProcess]:
    with other_agent.start() as process:
        yield process


def test_a_managed_resource_moves_to_another_class(rig: Rig, other_agent: Agent, other_process: AgentProcess) -> None:
    rig.apply("mr", config_map("c"), service("s"))
    assert finalizers(rig.get("ManagedResource", "mr")) == [f"{_FINALIZER}-{rig.agent.resource_class}"]
    before = rig.uid("ConfigMap", "c")

    rig.patch("ManagedResource", "mr", {"spec": {"class": other_agent.resource_class}})
    theirs = [f"{_FINALIZER}-{other_agent.resource_class}"]
    rig.until(lambda: finalizers(rig.get("ManagedResource", "mr")) == theirs, "the other finalizer")
    rig.until_applied("mr")
    live = rig.get("ConfigMap", "c")
    assert stamped_by(live) == other_agent.managed_by
    assert live["metadata"]["uid"] != before  # each class has its own target, so the former one cleans up
    assert rig.find("Service", "s")

    # From now on it is the other one's, and only that one's.
    rig.write_secret("mr", config_map("c", {"k": "2"}))
    rig.until_data("c", {"k": "2"})
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c") is None


def test_objects_that_are_to_be_kept_survive_a_change_of_class(
    rig: Rig, other_agent: Agent, other_process: AgentProcess
) -> None:
    rig.apply("mr", config_map("c"), keepObjects=True)
    before = rig.uid("ConfigMap", "c")
    rig.patch("ManagedResource", "mr", {"spec": {"class": other_agent.resource_class}})
    rig.until(lambda: stamped_by(rig.get("ConfigMap", "c")) == other_agent.managed_by, "the other agent to take it")
    rig.until_applied("mr")
    assert rig.uid("ConfigMap", "c") == before


def test_who_is_next_waits_until_the_former_one_has_cleaned_up(
    rig: Rig, other_agent: Agent, other_process: AgentProcess
) -> None:
    rig.apply("mr", config_map("held", finalizers=["example.com/hold"]))
    rig.patch("ManagedResource", "mr", {"spec": {"class": other_agent.resource_class}})
    rig.until_failed("mr", "still pending", reason="DeletionPending")
    assert finalizers(rig.get("ManagedResource", "mr")) == [f"{_FINALIZER}-{rig.agent.resource_class}"]
    rig.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    rig.until(lambda: (live := rig.find("ConfigMap", "held")) and stamped_by(live) == other_agent.managed_by, "it")
    rig.until_applied("mr")
    # So that the namespace can go.
    rig.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})


def test_a_class_without_an_agent_is_left_alone(rig: Rig) -> None:
    rig.write_secret("mr", config_map("c"))
    rig.write_managed_resource("mr", resource_class="unused")
    rig.apply("ours", config_map("d"))
    assert rig.find("ConfigMap", "c") is None
    assert finalizers(rig.get("ManagedResource", "mr")) == []


# --- annotations


def test_the_operation_reconcile_is_carried_out_and_taken_away(rig: Rig) -> None:
    rig.apply("mr", config_map("c"))
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_OPERATION: "reconcile", "other": "stays"}}})
    rig.until(lambda: annotations(rig.get("ManagedResource", "mr")) == {"other": "stays"}, "the annotation to go")


def test_the_operation_wait_for_state_stops_everything(rig: Rig) -> None:
    rig.write_secret("mr", config_map("c", {"k": "1"}))
    rig.write_managed_resource("mr", annotated={_OPERATION: "wait-for-state"})
    rig.apply("after", config_map("d"))
    assert rig.find("ConfigMap", "c") is None
    assert "status" not in rig.get("ManagedResource", "mr")
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_OPERATION: "reconcile"}}})
    rig.until_applied("mr")
    assert rig.find("ConfigMap", "c")


def test_an_ignored_managed_resource_is_left_as_it_is(rig: Rig) -> None:
    rig.apply("mr", config_map("c", {"k": "1"}))
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_IGNORE: "true"}}})
    rig.until(lambda: rig.applied("mr")[1] == "ManagedResourceIgnored", "it to be ignored")
    assert rig.applied("mr") == ("True", "ManagedResourceIgnored", "ManagedResource is marked to be ignored.")
    rig.patch("ConfigMap", "c", {"data": {"k": "by hand"}})
    rig.write_secret("mr", config_map("c", {"k": "2"}), config_map("d"))
    rig.apply("after", config_map("e"))
    assert rig.get("ConfigMap", "c")["data"] == {"k": "by hand"}
    assert rig.find("ConfigMap", "d") is None
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_IGNORE: None}}})
    rig.until_data("c", {"k": "2"})
    rig.until_applied("mr")


def test_an_ignored_managed_resource_can_be_deleted(rig: Rig) -> None:
    rig.apply("mr", config_map("c"))
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_IGNORE: "true"}}})
    rig.until(lambda: rig.applied("mr")[1] == "ManagedResourceIgnored", "it to be ignored")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c") is None


# --- what it costs


def like_ingress_nginx(rig: Rig) -> list[Object]:
    """Objects of as many kinds as that project's manifests have."""
    name, labels = rig.namespace, {"app": "controller"}
    served_by = {"service": {"name": "admission", "namespace": rig.namespace}}
    webhook = {"name": "v.example.com", "clientConfig": served_by, "sideEffects": "None", "failurePolicy": "Ignore"}
    rules = [{**rule("nowhere.example.com", "things"), "apiVersions": ["v1"], "operations": ["CREATE"]}]
    subject = account("controller", rig.namespace)
    jobs = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    return [
        obj(NAMESPACES, f"{name}-other"),
        *(obj(SERVICE_ACCOUNTS, each) for each in ("controller", "admission")),
        *(role(each) for each in ("controller", "admission")),
        *(role(f"{name}-{each}", kind=CLUSTER_ROLES) for each in ("controller", "admission")),
        *(role_binding(each, subject) for each in ("controller", "admission")),
        *(role_binding(f"{name}-{each}", subject, of=CLUSTER_ROLES) for each in ("controller", "admission")),
        config_map("controller"),
        service("controller", type="LoadBalancer", selector=labels),
        service("admission", selector=labels),
        deployment("controller", replicas=1),
        *(obj(JOBS, each, spec={"template": jobs}) for each in ("create", "patch")),
        obj("networking.k8s.io/v1 IngressClass", name, spec={"controller": "example.com/ingress"}),
        obj(
            "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
            name,
            webhooks=[{**webhook, "rules": rules, "admissionReviewVersions": ["v1"]}],
        ),
    ]


def test_a_bundle_that_is_the_first_to_use_its_kinds_costs_hardly_more_calls_than_objects(
    cluster: Cluster, namespace: str, own_agent: Agent, audit: Audit
) -> None:
    """What there is of a kind comes with its watch, and what kinds there are in two answers."""
    agent = Agent(cluster, resource_class=f"{own_agent.resource_class}-first")
    start = audit.mark()
    with agent.start() as process:
        rig = Rig(cluster, namespace, agent, process)
        rig.until(
            lambda: any(
                call.startswith("list customresourcedefinitions") for call in calls_of(agent, audit, since=start)
            ),
            "its own watches",
        )
        objects = like_ingress_nginx(rig)
        assert len(objects) == 19
        mark = audit.mark()
        rig.write("mr", *objects)
        rig.until(lambda: rig.condition("mr", "ResourcesHealthy").get("status") == "False", "its health")
        calls = calls_of(agent, audit, since=mark)
        # Once, it is queried whether there are objects of an optional kind that is not served: autoscalers.
        definitions = {f"list {name} /" for name in ("apiservices", "customresourcedefinitions")}
        # How often the status is written depends on how fast others are.
        assert len([call for call in calls if not call.startswith("patch managedresources")]) <= 32, calls
        assert [
            call for call in calls if call.startswith("list") and "events" not in call and call not in definitions
        ] == []
        rig.delete_managed_resource("mr")


def calls_of(agent: Agent, audit: Audit, *, since: int) -> list[str]:
    def text(call: Call) -> str:
        return f"{call.verb} {call.resource} {call.namespace}/{call.name}"

    return [text(call) for call in audit.calls(since=since) if call.user == agent.user]


def all_sorts(rig: Rig) -> list[Object]:
    """Objects full of defaults of the API server, some that other controllers write to, some that it warns of."""
    widgets = custom_resource(f"{rig.namespace}.example.com", "Widget")
    widget = obj(widgets, "w", namespace=rig.namespace, spec={"factor": 1.0, "numbers": [1, 2.5], "nothing": None})
    policy = obj("NetworkPolicy", "n", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]})
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    job = obj("CronJob", "j", spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}})
    hidden = secret("by-text", stringData={"k": "v"})
    warned_of = [with_unknown_field("unknown"), with_gated_field("gated")]
    kinds = [
        *warned_of,
        config_map("c"),
        service("s"),
        deployment("d", replicas=2),
        stateful_set("f"),
        role("r"),
        hidden,
    ]
    return [definition(widgets), widget, obj("ServiceAccount", "a"), policy, job, *kinds]


def test_neither_a_restart_nor_time_makes_it_write_or_read_anything(
    cluster: Cluster, namespace: str, own_agent: Agent, audit: Audit
) -> None:
    agent = Agent(cluster, resource_class=f"{own_agent.resource_class}-restarted", sync_seconds=_SYNC_SECONDS)
    with agent.start() as process:
        rig = Rig(cluster, namespace, agent, process)
        rig.write("mr", *all_sorts(rig))
        rig.write("another", config_map("another"))
        for name in ("mr", "another"):
            rig.until_applied(name)
        rig.until(lambda: rig.get("Deployment", "d").get("status", {}).get("readyReplicas") == 2, "the Deployment")
        rig.until(lambda: is_reported_healthy(rig, "mr"), "all to be healthy")
        reported = rig.until(lambda: rig.events("mr"), "an Event of the warnings")
        warnings = rig.applied("mr")[2]

    mark = audit.mark()
    with agent.start() as process:
        rig = Rig(cluster, namespace, agent, process)
        process.wait_for(lambda: min(passes(process).values()) >= 2, what="passes over each")
        time.sleep(2)
        calls = calls_of(agent, audit, since=mark)
        assert [call for call in calls if call.split()[0] not in {"get", "list"}] == []

        mark = audit.mark()
        before = regular_looks(process)
        process.wait_for(
            lambda: all(count >= before[name] + 6 for name, count in regular_looks(process).items()),
            what="three times the next looks at both",
        )
        time.sleep(1)
        assert calls_of(agent, audit, since=mark) == []
        assert rig.applied("mr")[2] == warnings
        assert rig.events("mr") == reported
        for name in ("mr", "another"):
            rig.delete_managed_resource(name)
    name = f"widgets.{namespace}.example.com"
    found = cluster.api.get(CUSTOM_RESOURCE_DEFINITIONS.path())["items"]
    assert name not in [each["metadata"]["name"] for each in found]


def passes(process: AgentProcess) -> dict[str, float]:
    """How many each controller has had over ManagedResources."""
    return counts(process, 'controller_runtime_reconcile_total{{controller="{0}",result="requeue_after"}}')


def regular_looks(process: AgentProcess) -> dict[str, float]:
    """After how many each controller has put off the next one, be it after a pass or instead of a needless one."""
    return counts(process, 'workqueue_retries_total{{controller="{0}",name="{0}"}}')


def counts(process: AgentProcess, series: str) -> dict[str, float]:
    metrics = process.metrics()
    return {name: metrics.get(series.format(name), 0.0) for name in ("managedresource", "health", "health-progressing")}


def is_reported_healthy(rig: Rig, name: str) -> bool:
    status = rig.get("ManagedResource", name).get("status") or {}
    reported = {found["type"]: found["status"] for found in status.get("conditions") or []}
    return reported == {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
