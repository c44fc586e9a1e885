"""high-availability-config as a whole; its rules one by one are in the files beside this one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.resource_manager.webhooks import HighAvailabilityConfig
from gardener import keys
from kit.objects import obj
from kit.webhooks.mutating import (
    answered,
    behaves_well,
    damaged,
    mapping,
    one_of,
    patiently,
    really_answered,
    record,
    request,
    several,
    state_of,
    words,
)
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Handler, Kind, Refusal
from webhooks.handlers import high_availability_config
from webhooks.handlers.high_availability_config.rules import HOST, ZONE

DEPLOYMENT, STATEFUL_SET = Kind("apps", "v1", "Deployment"), Kind("apps", "v1", "StatefulSet")
HPA, HVPA = Kind("autoscaling", "v2", "HorizontalPodAutoscaler"), Kind("autoscaling.k8s.io", "v1alpha1", "Hvpa")
VPA = Kind("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler")
PREFIX = "high-availability-config.resources.gardener.cloud/"
SELECTOR = {"matchLabels": {"app": "x"}}
SOFT_HOSTS = {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": SELECTOR}
NO_DEPLOYMENT = "unable to decode into Deployment:"


def prefixed(annotations: dict[str, str]) -> dict[str, str]:
    return {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}


def namespace(name: str, **annotations: str) -> Object:
    """`failure_tolerance_type` and so on, without the prefix."""
    return obj("v1 Namespace", name, annotations=prefixed(annotations))


def hpa(most: int, *, of: str, namespace: str = "ns", name: str = "h", **reference: str) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": of, **reference}
    spec = {"scaleTargetRef": target, "maxReplicas": most}
    return obj("autoscaling/v2 HorizontalPodAutoscaler", f"{namespace}/{name}", spec=spec)


def hvpa(most: int, *, of: str, deploy: Any = True, namespace: str = "ns", name: str = "v") -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": of}
    spec = {"targetRef": target, "hpa": {"deploy": deploy, "template": {"spec": {"maxReplicas": most}}}}
    return obj("autoscaling.k8s.io/v1alpha1 Hvpa", f"{namespace}/{name}", spec=spec)


def handler_of(*objects: Object, namespaces: tuple[str, ...] = (), **settings: Any) -> Handler:
    config = HighAvailabilityConfig(enabled=True, **settings)
    state = state_of(*objects, namespaces=namespaces)
    return high_availability_config.handler(config, state)


def workload(current: int | None, component_type: str = "", pod: Any = None, **annotations: str) -> Object:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}], **(pod or {})}}
    labels = {keys.HIGH_AVAILABILITY_TYPE: component_type} if component_type else {}
    return {
        "metadata": {"labels": labels, "annotations": prefixed(annotations)},
        "spec": {"replicas": current, "selector": {"matchLabels": {"own": "selector"}}, "template": template},
    }


def spec_after(handler: Handler, obj: Object, kind: Kind = DEPLOYMENT, name: str = "d") -> Object:
    answer = answered(handler, request(obj, kind=kind, name=name))
    assert isinstance(answer, Changed), answer
    spec: Object = answer.after["spec"]
    return spec


def pod_after(handler: Handler, obj: Object, kind: Kind = DEPLOYMENT, name: str = "d") -> Object:
    spec: Object = spec_after(handler, obj, kind, name)["template"]["spec"]
    return spec


HANDLER, LATEST = handler_of(namespace("ns")), handler_of(namespace("ns"), behavior="latest")


def hard(key: str, skew: int, domains: int) -> Object:
    strict = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    return {"topologyKey": key, "maxSkew": skew, "minDomains": domains, **strict}


def in_zones(*zones: str) -> Object:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_a_controller_that_must_survive_nothing_gets_one_replica_in_its_zones() -> None:
    handler = handler_of(namespace("ns", failure_tolerance_type="", zones="b,a"))
    spec = spec_after(handler, workload(3, "controller"))
    assert spec["replicas"] == 1
    assert spec["template"]["spec"] == {"containers": [{"name": "c"}], "affinity": in_zones("a", "b")}


def test_an_autoscaled_server_is_spread_for_the_most_replicas() -> None:
    handler = handler_of(namespace("ns", zones="z1,z2"), hpa(4, of="d"))
    spec = spec_after(handler, workload(2, "server"))
    assert spec["replicas"] == 2
    assert "affinity" not in spec["template"]["spec"]
    assert spec["template"]["spec"]["topologySpreadConstraints"] == [SOFT_HOSTS, hard(ZONE, 2, 2)]


def test_the_failure_of_a_node_is_survived_on_different_hosts() -> None:
    handler = handler_of(namespace("ns", failure_tolerance_type="node", zones="z1,z2,z3"))
    pod = pod_after(handler, workload(2, "server"))
    assert pod["topologySpreadConstraints"] == [hard(HOST, 1, 2)]
    assert pod["affinity"] == in_zones("z1", "z2", "z3")


def test_replicas_are_not_touched_without_a_type() -> None:
    spec = spec_after(HANDLER, workload(3, replicas="5"))
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["topologySpreadConstraints"] == [SOFT_HOSTS]


@pytest.mark.parametrize(("lowest", "after"), [(1, (2, 2)), (0, (0, 1))])
def test_an_autoscaler_gets_bounds_that_fit(lowest: int, after: tuple[int, int]) -> None:
    autoscaler = workload(None, "server") | {"spec": {"minReplicas": lowest, "maxReplicas": 1}}
    spec = spec_after(HANDLER, autoscaler, HPA)
    assert (spec["minReplicas"], spec["maxReplicas"]) == after


@pytest.mark.parametrize("version", ["v2beta1", "v2"])
def test_each_supported_version_of_autoscalers_is_changed(version: str) -> None:
    autoscaler = workload(None, "server") | {"spec": {"minReplicas": 1}, "apiVersion": f"autoscaling/{version}"}
    kind = Kind("autoscaling", version, HPA.kind)
    assert spec_after(HANDLER, autoscaler, kind) == {"minReplicas": 2, "maxReplicas": 2}


@pytest.mark.parametrize("version", ["v1", "v2beta2"])
def test_other_versions_of_autoscalers_are_denied(version: str) -> None:
    answer = answered(HANDLER, request({}, kind=Kind("autoscaling", version, HPA.kind)))
    assert answer == Denied(f'autoscaling version "{version}" in request is not supported')


def test_an_hvpa_gets_bounds_in_its_template() -> None:
    before = hvpa(1, of="d")
    before["metadata"]["labels"] = {keys.HIGH_AVAILABILITY_TYPE: "server"}
    before["spec"]["hpa"]["template"]["spec"]["minReplicas"] = 1
    after = spec_after(HANDLER, before, HVPA)
    assert after["hpa"] == {"deploy": True, "template": {"spec": {"minReplicas": 2, "maxReplicas": 2}}}
    assert after["targetRef"] == before["spec"]["targetRef"]


@pytest.mark.parametrize("spec", [{}, {"hpa": None}, {"hpa": {"deploy": True}}, {"hpa": {"template": {"spec": None}}}])
def test_an_hvpa_without_bounds_stays_as_it_is(spec: Object) -> None:
    assert spec_after(HANDLER, {**workload(None, "server"), "spec": spec}, HVPA) == spec


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Kind("apps", "v1", "DaemonSet"), "unexpected resource: DaemonSet.apps"),
        (Kind("", "v1", "Pod"), "unexpected resource: Pod"),
        (VPA, "unexpected resource: VerticalPodAutoscaler.autoscaling.k8s.io"),
    ],
)
def test_other_kinds_are_allowed_without_a_look_at_anything(kind: Kind, message: str) -> None:
    assert answered(handler_of(), request({}, kind=kind)) == Allowed(message)


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_the_version_of_a_request_for_a_workload_does_not_matter(version: str) -> None:
    kind = Kind("apps", version, "Deployment")
    assert spec_after(HANDLER, workload(1, "server"), kind)["replicas"] == 2


def test_a_missing_namespace_is_an_error() -> None:
    requested = request(workload(1), kind=DEPLOYMENT, namespace="missing")
    assert really_answered(HANDLER, requested) == Errored(404, 'namespaces "missing" not found')


def test_a_namespace_whose_autoscalers_are_not_watched_is_an_error() -> None:
    answer = answered(handler_of(namespace("ns"), namespaces=("other",)), request(workload(1), kind=DEPLOYMENT))
    assert isinstance(answer, Errored)
    assert answer.code == 500
    assert 'namespace "ns" is not watched' in answer.message


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (None, "there is no content to decode"),
        ("x", f"{NO_DEPLOYMENT} expected an object"),
        ({"apiVersion": "v1", "kind": "Pod"}, "unable to decode v1, Kind=Pod into Deployment"),
        ({"spec": {"replicas": "3"}}, f"{NO_DEPLOYMENT} Expected `int | null`, got `str` - at `$.spec.replicas`"),
        (
            workload(1, "server", replicas="x"),
            f'annotation "{keys.HIGH_AVAILABILITY_REPLICAS}": strconv.Atoi: parsing "x": invalid syntax',
        ),
    ],
)
def test_what_cannot_be_decoded_is_denied_as_is_an_annotation_that_is_no_number(obj: Any, message: str) -> None:
    assert answered(HANDLER, request(obj, kind=DEPLOYMENT)) == Denied(message)


@pytest.mark.parametrize(
    ("scalers", "replicas"),
    [
        pytest.param([hpa(9, of="d")], 5, id="an HPA keeps what is more"),
        pytest.param([hvpa(9, of="d")], 5, id="an HVPA does"),
        pytest.param([], 2, id="nothing scales"),
        pytest.param([hpa(9, of="other")], 2, id="another name"),
        pytest.param([hpa(9, of="d", kind="StatefulSet")], 2, id="another kind"),
        pytest.param([hpa(9, of="d", apiVersion="apps/v1beta1")], 2, id="another version"),
        pytest.param([hpa(9, of="d", namespace="other")], 2, id="another namespace"),
        pytest.param([hvpa(9, of="d", namespace="other")], 2, id="an HVPA of another namespace"),
        pytest.param([hvpa(9, of="d", deploy=False)], 2, id="an HVPA that deploys no HPA"),
        pytest.param([{**hvpa(9, of="d"), "spec": {"hpa": {"deploy": True}, "targetRef": None}}], 2, id="no target"),
    ],
)
def test_a_workload_is_scaled_by_what_names_it(scalers: list[Object], replicas: int) -> None:
    assert spec_after(handler_of(namespace("ns"), *scalers), workload(5, "server"))["replicas"] == replicas


@pytest.mark.parametrize(
    ("scalers", "replicas"),
    [
        pytest.param(
            [hvpa(1, of="d", name="a"), hpa(3, of="d", name="c"), hpa(2, of="d", name="b")], 2, id="first HPA"
        ),
        pytest.param([hpa(2, of="d")], 3, id="more replicas than it allows"),
    ],
)
def test_a_workload_is_spread_for_the_first_hpa_by_name_or_for_the_replicas_that_it_has(
    scalers: list[Object], replicas: int
) -> None:
    handler = handler_of(namespace("ns", failure_tolerance_type="node"), *scalers)
    pod = pod_after(handler, workload(replicas, "server"))
    assert pod["topologySpreadConstraints"] == [hard(HOST, 1, replicas)]


def test_a_workload_without_a_name_yet_is_not_scaled() -> None:
    handler = handler_of(namespace("ns"), hpa(9, of="d"))
    assert spec_after(handler, workload(5, "server"), name="")["replicas"] == 2


def nodes(count: int) -> list[Object]:
    return [obj("v1 Node", f"n{number}") for number in range(count)]


def test_the_latest_behavior_counts_pods_of_the_same_rollout_and_spreads_evenly() -> None:
    handler = handler_of(namespace("ns", zones="a,b"), *nodes(2), behavior="latest")
    foreign = {"topologyKey": "rack", "matchLabelKeys": ["x"]}
    pod = pod_after(handler, workload(8, pod={"topologySpreadConstraints": [foreign]}))
    same_rollout = {"matchLabelKeys": ["pod-template-hash"]}
    assert pod["topologySpreadConstraints"] == [
        {"topologyKey": "rack", "matchLabelKeys": ["x", "pod-template-hash"]},
        {**SOFT_HOSTS, **same_rollout},
        {**hard(ZONE, 1, 2), **same_rollout},
    ]


def test_the_latest_behavior_adds_the_key_also_where_nothing_is_spread() -> None:
    foreign = {"topologyKey": HOST}
    pod = pod_after(LATEST, workload(1, pod={"topologySpreadConstraints": [foreign]}))
    assert pod["topologySpreadConstraints"] == [{"topologyKey": HOST, "matchLabelKeys": ["pod-template-hash"]}]


def test_the_latest_behavior_spreads_stateful_sets_by_their_own_selector() -> None:
    pod = pod_after(LATEST, workload(2), STATEFUL_SET)
    assert pod["topologySpreadConstraints"] == [{**SOFT_HOSTS, "labelSelector": {"matchLabels": {"own": "selector"}}}]
    without = workload(2)
    del without["spec"]["selector"]
    assert pod_after(LATEST, without, STATEFUL_SET)["topologySpreadConstraints"] == [SOFT_HOSTS]


@pytest.mark.parametrize(("count", "when"), [(0, "ScheduleAnyway"), (1, "ScheduleAnyway"), (2, "DoNotSchedule")])
def test_the_latest_behavior_is_not_strict_on_a_single_node(count: int, when: str) -> None:
    handler = handler_of(namespace("ns", failure_tolerance_type="node"), *nodes(count), behavior="latest")
    [constraint] = pod_after(handler, workload(2))["topologySpreadConstraints"]
    assert constraint["whenUnsatisfiable"] == when
    assert ("minDomains" in constraint) == (count > 1)


def test_the_seed_behavior_does_not_count_nodes() -> None:
    handler = handler_of(namespace("ns", failure_tolerance_type="node"), *nodes(1))
    assert pod_after(handler, workload(2), STATEFUL_SET)["topologySpreadConstraints"] == [hard(HOST, 1, 2)]


@pytest.mark.parametrize(
    ("kind", "status", "after"),
    [
        (STATEFUL_SET, None, {"replicas": 0, "availableReplicas": 0}),
        (STATEFUL_SET, {"replicas": 3, "x": 1}, {"replicas": 3, "x": 1, "availableReplicas": 0}),
        (HPA, {}, {"desiredReplicas": 0}),
        (DEPLOYMENT, {}, {}),
    ],
)
def test_numbers_that_a_status_always_has_are_there(kind: Kind, status: Any, after: Any) -> None:
    answer = answered(HANDLER, request({"status": status}, kind=kind))
    assert answer.after == {"status": after}


HANDLERS = [
    handler_of(
        namespace("ns", zones=zones, **tolerance),
        hpa(4, of="d"),
        *nodes(2),
        behavior=behavior,
        default_not_ready_toleration_seconds=60,
        default_unreachable_toleration_seconds=0,
    )
    for tolerance in ({}, {"failure_tolerance_type": ""}, {"failure_tolerance_type": "zone"})
    for zones in ("", "a", "a,b")
    for behavior in ("seed", "latest")
]

numbers = one_of(0, 1, 2, 5, 2**31 - 1)
terms = several(
    record(matchExpressions=several(record(key=one_of(ZONE, "other"), operator=words, values=several(words))))
)
node_affinity = record(requiredDuringSchedulingIgnoredDuringExecution=record(nodeSelectorTerms=terms))
constraints = several(
    record(topologyKey=one_of(HOST, ZONE, "rack"), matchLabelKeys=several(one_of("pod-template-hash", "a")))
)
tolerations = several(
    record(key=one_of("node.kubernetes.io/not-ready", "a"), effect=one_of("", "NoExecute", "NoSchedule"))
)
pod_specs = record(
    affinity=record(nodeAffinity=node_affinity, podAffinity=record()),
    topologySpreadConstraints=constraints,
    tolerations=tolerations,
)
metadatas = record(
    labels=mapping(keys.HIGH_AVAILABILITY_TYPE),
    annotations=mapping(keys.HIGH_AVAILABILITY_REPLICAS, keys.HIGH_AVAILABILITY_HOST_SPREAD),
)
workloads = record(
    metadata=metadatas,
    spec=record(
        replicas=numbers,
        selector=record(matchLabels=mapping()),
        template=record(metadata=record(labels=mapping()), spec=pod_specs),
    ),
    status=record(replicas=numbers),
)
bounds = record(minReplicas=numbers, maxReplicas=numbers)
hpas = record(metadata=metadatas, spec=bounds, status=record())
hvpas = record(metadata=metadatas, spec=record(hpa=record(template=record(spec=bounds))))
POD_FIELDS = ("affinity.nodeAffinity", "tolerations", "topologySpreadConstraints")
OF_WORKLOADS = ["spec.replicas", *(f"spec.template.spec.{field}" for field in POD_FIELDS)]
TOUCHES = {
    DEPLOYMENT: OF_WORKLOADS,
    STATEFUL_SET: [*OF_WORKLOADS, "status"],
    HPA: ["spec.minReplicas", "spec.maxReplicas", "status"],
    HVPA: [f"spec.hpa.template.spec.{bound}" for bound in ("minReplicas", "maxReplicas")],
}
OBJECTS = {DEPLOYMENT: workloads, STATEFUL_SET: workloads, HPA: hpas, HVPA: hvpas}


@patiently
@given(st.sampled_from(HANDLERS), st.sampled_from(list(OBJECTS)), st.data())
def test_it_behaves_well(handler: Handler, kind: Kind, data: st.DataObject) -> None:
    obj = data.draw(OBJECTS[kind] | damaged(OBJECTS[kind]))
    name = data.draw(one_of("d", "other"))

    def changed(before: Any) -> Any:
        answer: Answer = answered(handler, request(before, kind=kind, name=name))
        if isinstance(answer, Denied):
            raise Refusal(answer)
        assert isinstance(answer, Changed)
        return answer.after

    behaves_well(changed, obj, touches=TOUCHES[kind])
