"""The combined webhook of pods does in one call what the separate ones do one after another."""

import asyncio
import copy
from collections.abc import Mapping, Sequence
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.resource_manager import decode
from config.resource_manager.schema import ResourceManagerConfiguration
from kit.objects import config_map, obj
from kit.webhooks.mutating import mapping, one_of, pods, record, request, several, state_of
from kit.webhooks.mutating import really_answered as answered
from kube.errors import NotFound, Unreachable
from kube.objects import Object, labels, matches_label_selector
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Handler, Mutation, Refusal, Request
from webhooks.combined import Link, chain, handler, is_enabled, links, mutations
from webhooks.configurations import registrations
from webhooks.generic import defaulter
from webhooks.rules.patch import difference
from webhooks.rules.registration import EVERYTHING, Instance, Mode, Registration, having, without
from webhooks.state import SharedListers

TYPE = {"apiVersion": "v1", "kind": "Pod"}
KEYS = (
    "kubernetesServiceHost: {enabled: true, host: api.example.com}",
    "podKubeAPIServerLoadBalancing: {enabled: true}",
    "podSchedulerName: {enabled: true, schedulerName: bin-packing-scheduler}",
    "podTopologySpreadConstraints: {enabled: true}",
    "projectedTokenMount: {enabled: true}",
    "seccompProfile: {enabled: true}",
    "systemComponentsConfig: {enabled: true, podNodeSelector: {a: b}, podTolerations: [{key: t, operator: Exists}]}",
)


def configured(*sections: str) -> ResourceManagerConfiguration:
    return decode("webhooks:\n" + "".join(f"  {section}\n" for section in sections)).config


INJECT = "apiserver-proxy.networking.gardener.cloud/inject"
CONSIDER = "system-components-config.resources.gardener.cloud/consider"
NAMESPACES: Mapping[str, dict[str, str]] = {
    name: {"kubernetes.io/metadata.name": name, **labels}
    for name, labels in {
        "plain": {},
        "garden": {"gardener.cloud/role": "garden"},
        "shoot--a": {"gardener.cloud/role": "shoot"},
        "considered": {"gardener.cloud/role": "extension", CONSIDER: "true"},
        "kube-system": {},
        "without-proxy": {INJECT: "disable"},
    }.items()
}
OBJECTS: list[Object] = [
    *(obj("v1 Namespace", name, labels=dict(of)) for name, of in NAMESPACES.items()),
    *(obj("v1 ServiceAccount", f"{name}/mounts-none", automountServiceAccountToken=False) for name in NAMESPACES),
    *(
        config_map(f"{name}/istio-internal-load-balancing", data={"hosts": hosts, "istio-namespace": "istio"})
        for name, hosts in (("shoot--a", "api.a,api.b"), ("garden", ""))
    ),
    obj("v1 Service", "istio/istio-ingressgateway-internal", spec={"clusterIPs": ["10.0.0.1"]}),
    obj("v1 Node", "n", spec={"taints": [{"key": "d", "effect": "x"}]}),
]

EXPIRATION = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
deciding_labels: dict[str, st.SearchStrategy[str]] = {
    "app": one_of("gardener-resource-manager", "virtual-garden-gardener-resource-manager", "x"),
    "resources.gardener.cloud/managed-by": st.just("gardener"),
    "static-pod": one_of("true", "false"),
    "pod-template-hash": st.just("h1"),
    INJECT: one_of("disable", "x"),
}
skips = [f"{name}.resources.gardener.cloud/skip" for name in ("projected-token-mount", "seccompprofile")]
some_labels = mapping(*deciding_labels, *skips) | st.fixed_dictionaries({}, optional=deciding_labels)
some_annotations = st.dictionaries(st.just(EXPIRATION), one_of("700", "x"), max_size=1)
some_pods = pods(
    record(labels=some_labels, annotations=some_annotations),
    serviceAccountName=one_of("mounts-none", "missing", "default"),
    containers=several(record(name=one_of("c"), env=several(record(name=one_of("KUBERNETES_SERVICE_HOST", "B"))))),
    volumes=several(record(name=one_of("v"), secret=record(secretName=one_of("generic-token-kubeconfig-1", "s")))),
    topologySpreadConstraints=several(record(topologyKey=one_of("zone"))),
    schedulerName=one_of("default-scheduler", "mine"),
    securityContext=record(seccompProfile=record(type=one_of("Localhost"))),
    tolerations=several(record(key=one_of("t", "u"), operator=one_of("Exists"))),
)


async def admitted(
    entries: Sequence[Registration], handlers: Mapping[str, Handler], requested: Request
) -> Object | Answer:
    """What an API server makes of a pod with such a configuration: the pod, or why it is refused."""
    obj: Object = copy.deepcopy(requested.object)
    for entry in entries:
        if not matches_label_selector(entry.namespaces.json(), NAMESPACES[requested.namespace]):
            continue
        if not matches_label_selector(entry.objects.json(), labels(obj)):
            continue
        answer: Answer = await handlers[entry.webhook](request(obj, namespace=requested.namespace))
        if isinstance(answer, Changed):
            assert answer.before == obj
            obj = jsonpatch.apply_patch(obj, difference(answer.before, answer.after))
        elif not isinstance(answer, Allowed):
            return answer
    return obj


def both_ways(config: ResourceManagerConfiguration, instance: Instance, requested: Request) -> tuple[Any, Any]:
    state = state_of(*OBJECTS)
    separate = {name: defaulter(mutation) for name, mutation in mutations(config, state).items()}
    one = [e for e in registrations.mutating(config.webhooks, instance, combined=True) if e.is_for_pods]
    many = registrations.pods(config.webhooks, instance)
    handlers = dict(separate)
    if one:
        handlers["pods"] = handler(config, instance.mode, state)
    return asyncio.run(admitted(one, handlers, requested)), asyncio.run(admitted(many, separate, requested))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("prefix", ["", "virtual-garden-"])
@given(
    sections=st.lists(st.sampled_from(KEYS), unique=True),
    pod=some_pods,
    namespace=st.sampled_from(sorted(NAMESPACES)),
)
@settings(deadline=None, max_examples=60)
def test_the_result_is_the_same_as_one_by_one(
    mode: Mode, prefix: str, sections: list[str], pod: Object, namespace: str
) -> None:
    config = configured(*sections)
    combined, separate = both_ways(config, Instance(mode=mode, prefix=prefix), request(pod, namespace=namespace))
    assert combined == separate


def test_a_pod_that_all_webhooks_change_is_changed_by_all() -> None:
    """Guards the property above against pods that no handler looks at."""
    pod = {
        **TYPE,
        "metadata": {"labels": {"pod-template-hash": "h1"}},
        "spec": {
            "serviceAccountName": "mounts-none",
            "containers": [{"name": "c"}],
            "volumes": [{"name": "v", "secret": {"secretName": "generic-token-kubeconfig-1"}}],
            "topologySpreadConstraints": [{"topologyKey": "zone"}],
        },
    }
    runtime = Instance(mode=Mode.RUNTIME)
    combined, separate = both_ways(configured(*KEYS), runtime, request(pod, namespace="shoot--a"))
    assert combined == separate
    spec = combined["spec"]
    assert spec["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["api.a", "api.b"]}]
    assert spec["schedulerName"] == "bin-packing-scheduler"
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["containers"][0]["env"] == [{"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchLabels": {"pod-template-hash": "h1"}}
    assert [volume["name"] for volume in spec["volumes"]] == ["v", "kube-api-access-gardener"]
    assert "tolerations" not in spec, "the namespace does not ask for it"
    tolerated, _ = both_ways(configured(*KEYS), runtime, request(pod, namespace="considered"))
    assert [toleration["key"] for toleration in tolerated["spec"]["tolerations"]] == ["t", "d"]


def test_nothing_is_served_if_no_webhook_of_pods_is_enabled() -> None:
    assert not is_enabled(configured("vpaInPlaceUpdates: {enabled: true}"))
    assert all(is_enabled(configured(section)) for section in KEYS)


def test_namespaces_are_watched_only_if_a_user_queries() -> None:
    state = state_of(*OBJECTS)
    combined = handler(configured(KEYS[2], KEYS[5]), Mode.RUNTIME, state)
    caches: Any = state.target.caches
    assert caches.stores == {}
    answer = answered(combined, request({**TYPE}, namespace="garden"))
    assert answer.after["spec"]["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert [resource.plural for resource in caches.stores] == ["namespaces"]


def test_a_namespace_that_does_not_exist_is_reported() -> None:
    combined = handler(configured(KEYS[2], KEYS[5]), Mode.RUNTIME, state_of(*OBJECTS))
    answer = answered(combined, request({**TYPE}, namespace="unknown"))
    assert isinstance(answer, Failure)
    assert answer.status["code"] == 404


@pytest.mark.parametrize("pod", [[], {"kind": "Secret"}, {"metadata": 1}, {"metadata": {"labels": []}}])
def test_what_is_no_pod_is_an_error(pod: Any) -> None:
    combined = handler(configured(*KEYS), Mode.RUNTIME, state_of(*OBJECTS))
    answer = answered(combined, request(pod, namespace="garden"))
    assert isinstance(answer, Errored)
    assert answer.code == 400
    assert answered(combined, request(None)) == Errored(400, "there is no content to decode")
    assert answered(combined, request(None, operation="DELETE")) == Allowed()


async def no_labels(_: str) -> dict[str, str]:
    return {}


def link(mutation: Mutation, *, may_fail: bool, timeout: float = 10) -> Link:
    return Link("l", mutation, EVERYTHING, EVERYTHING, may_fail, timeout)


def adding(key: str) -> Link:
    async def mutate(_: Request, obj: Object) -> None:
        obj.setdefault("spec", {})[key] = True

    return link(mutate, may_fail=False)


async def breaks(_: Request, obj: Object) -> None:
    obj["spec"]["broken"] = True
    raise KeyError("a mistake")


async def hangs(_: Request, obj: Object) -> None:
    obj["spec"]["late"] = True
    await asyncio.Event().wait()


MISSING: Object = {"message": "not there", "reason": "NotFound"}


@pytest.mark.parametrize("failing", [breaks, hangs])
def test_of_a_link_that_may_fail_nothing_is_left(failing: Mutation) -> None:
    handle = chain([adding("a"), link(failing, may_fail=True, timeout=0.01), adding("b")], no_labels)
    answer = answered(handle, request({**TYPE}))
    assert answer.after == {**TYPE, "spec": {"a": True, "b": True}}


def test_all_links_may_fail() -> None:
    handle = chain([link(breaks, may_fail=True), link(hangs, may_fail=True, timeout=0.01)], no_labels)
    pod = {**TYPE, "spec": {}}
    assert answered(handle, request(pod)) == Changed(pod, pod)


def test_a_link_that_must_not_fail_ends_the_chain() -> None:
    late = chain([adding("a"), link(hangs, may_fail=False, timeout=0.01), adding("b")], no_labels)
    answer = answered(late, request({**TYPE}))
    assert answer == Errored(500, 'failed calling webhook "l": no answer within 0.01s')
    broken = chain([adding("a"), link(breaks, may_fail=False)], no_labels)
    with pytest.raises(KeyError):
        answered(broken, request({**TYPE}))


@pytest.mark.parametrize("may_fail", [False, True])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Refusal(Denied("no")), Denied("no")),
        (NotFound(404, **MISSING), Failure({"status": "Failure", "code": 404, **MISSING})),
        (Unreachable("connection refused"), Denied("connection refused")),
    ],
)
def test_a_refusal_counts_whatever_the_failure_policy(error: Exception, expected: Answer, may_fail: bool) -> None:
    async def refuses(_: Request, obj: Object) -> None:
        obj["spec"]["refused"] = True
        raise error

    handle = chain([adding("a"), link(refuses, may_fail=may_fail)], no_labels)
    pod = {**TYPE}
    assert answered(handle, request(pod)) == expected
    assert pod == TYPE


def test_a_link_sees_what_the_links_before_it_did() -> None:
    async def label(_: Request, obj: Object) -> None:
        obj["metadata"] = {"labels": {"seen": "yes"}}

    second = adding("b")
    later = Link(second.name, second.mutation, EVERYTHING, having("seen", "yes"), may_fail=False, timeout=1)
    alone = answered(chain([later], no_labels), request({**TYPE}))
    after = answered(chain([link(label, may_fail=False), later], no_labels), request({**TYPE}))
    assert "spec" not in alone.after
    assert after.after["spec"] == {"b": True}


def test_what_the_api_server_has_checked_is_not_checked_again() -> None:
    config = configured(KEYS[4], KEYS[5])
    runtime = Instance(mode=Mode.RUNTIME)
    (one,) = registrations.mutating(config.webhooks, runtime, combined=True)
    state: SharedListers = state_of()
    of = links(registrations.pods(config.webhooks, runtime), one, mutations(config, state))
    assert [(found.name, found.namespaces, found.objects) for found in of] == [
        ("projected-token-mount", EVERYTHING, without("projected-token-mount.resources.gardener.cloud/skip")),
        ("seccomp-profile", EVERYTHING, without("seccompprofile.resources.gardener.cloud/skip")),
    ]


@pytest.mark.parametrize("ephemeral", [[{"name": "e", "env": [], "volumeMounts": None}], [], None], ids=str)
async def test_ephemeral_containers_are_left_alone(ephemeral: Any) -> None:
    """The API server takes nothing else in the request that adds one, and refuses others that change one."""
    pod = obj("v1 Pod", "shoot--a/p", labels={"app": "gardener-resource-manager"})
    pod["spec"] = {"containers": [{"name": "c"}], "ephemeralContainers": ephemeral}
    made = mutations(configured(*KEYS), state_of(*OBJECTS))
    changing = 0
    for mutation in made.values():
        answer = await defaulter(mutation)(request(copy.deepcopy(pod), namespace="shoot--a"))
        if isinstance(answer, Changed):
            changing += 1
            assert answer.after["spec"]["ephemeralContainers"] == ephemeral
    assert changing >= 5
