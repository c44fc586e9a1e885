"""Which settings follow from DestinationRules, for which ingress gateways."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agent.resource_manager.istio_cluster_configuration.rules import (
    MOST_PATCHES,
    MOST_PORTS,
    DestinationRule,
    Exports,
    Http2,
    Patches,
    Service,
    ServicePort,
    compute_patches,
    envoy_filter,
    http2_mode,
    is_ingress,
)
from kube.objects import Key, Object

OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def rule(name: str = "r", host: str = "svc", *, namespace: str = "a", **spec: Any) -> DestinationRule:
    spec = {"host": host, "exportTo": ["*"], **spec}
    return DestinationRule.of({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def service(*ports: Object, export_to: str = "*", namespace: str = "a") -> dict[Key, Service]:
    marks = {"networking.istio.io/exportTo": export_to} if export_to else {}
    meta = {"name": "svc", "namespace": namespace, "annotations": marks}
    found = Service.of({"metadata": meta, "spec": {"ports": list(ports)}})
    return {found.key: found}


def config_patches(
    rules: Iterable[DestinationRule], service_of: Callable[[Key], Service | None], namespaces: Iterable[str]
) -> dict[str, list[Object]]:
    found = Patches({namespace: [] for namespace in namespaces})
    assert all(step is None for step in compute_patches(found, rules, service_of))
    assert not found.left_out
    return found.by_namespace


HTTPS = {"port": 443, "name": "https"}


def test_each_port_of_the_service_is_a_cluster_of_each_gateway() -> None:
    found = config_patches([rule()], service(HTTPS, {"port": 80, "name": "grpc-x"}).get, ["t1", "t2"])
    assert found["t1"] == found["t2"]
    plain, grpc = found["t1"]
    assert plain == {
        "applyTo": "CLUSTER",
        "match": {"context": "GATEWAY", "cluster": {"name": "outbound|443||svc.a.svc.cluster.local"}},
        "patch": {"operation": "MERGE", "value": {"per_connection_buffer_limit_bytes": 32768}},
    }
    windows = {"initial_stream_window_size": 65536, "initial_connection_window_size": 1048576}
    assert grpc["patch"]["value"] == {
        "per_connection_buffer_limit_bytes": 32768,
        "typed_extension_protocol_options": {
            OPTIONS: {
                "@type": f"type.googleapis.com/{OPTIONS}",
                "common_http_protocol_options": {"max_connection_duration": "86400s"},
                "explicit_http_config": {"http2_protocol_options": windows},
            }
        },
    }


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("svc", Key("a", "svc")),
        ("svc.b", Key("b", "svc")),
        ("svc.b.svc", Key("b", "svc")),
        ("svc.b.svc.cluster.local", Key("b", "svc")),
        ("svc.b.example.com", None),
        ("example.com.", Key("com", "example")),
        ("", None),
    ],
)
def test_the_service_of_a_host(host: str, key: Key | None) -> None:
    assert rule(host=host).service() == key


@pytest.mark.parametrize(
    "spec",
    [
        *({"subsets": [{"name": "x"}]}, {"workloadSelector": {"matchLabels": {"a": "b"}}}),
        *({"host": "gone"}, {"exportTo": []}),
    ],
)
def test_rules_that_lead_to_nothing(spec: Object) -> None:
    assert config_patches([rule(**spec)], service(HTTPS).get, ["t"]) == {"t": []}


@pytest.mark.parametrize(
    ("export_to", "resolved"),
    [
        ([], []),
        (["*"], ["a", "t"]),
        (["."], ["a"]),
        (["t"], ["t"]),
        (["x"], []),
        (["t", "~"], []),
        (["t", "*", "~"], ["a", "t"]),
        (["~", "*"], []),
        (["t", "t", "."], ["a", "t"]),
    ],
)
def test_what_something_is_exported_to(export_to: list[str], resolved: list[str]) -> None:
    assert Exports.of(export_to, own="a").among(["a", "t"]) == resolved


@pytest.mark.parametrize(("annotation", "targets"), [("", []), ("t1", ["t1"]), (" t1 , t2 ", ["t1", "t2"]), ("~", [])])
def test_a_service_has_to_be_exported_too(annotation: str, targets: list[str]) -> None:
    found = config_patches([rule()], service(HTTPS, export_to=annotation).get, ["t1", "t2"])
    assert [target for target, patches in found.items() if patches] == targets


def _pool(**http: Any) -> Object:
    return {"connectionPool": {"http": http}}


def _upgraded(port: int) -> Object:
    return {"portLevelSettings": [{"port": {"number": port}, **_pool(h2UpgradePolicy="UPGRADE")}]}


@pytest.mark.parametrize(
    ("policy", "port", "mode"),
    [
        ({}, ServicePort(1, "https", ""), ""),
        ({}, ServicePort(1, "http2", ""), "explicit_http_config"),
        ({}, ServicePort(1, "GRPC-Web-x", ""), "explicit_http_config"),
        ({}, ServicePort(1, "grpc-x", "https"), ""),
        ({}, ServicePort(1, "x", "kubernetes.io/h2c"), "explicit_http_config"),
        (_pool(useClientProtocol=True), ServicePort(1, "x", ""), "use_downstream_protocol_config"),
        (_pool(h2UpgradePolicy="UPGRADE"), ServicePort(1, "x", ""), "explicit_http_config"),
        (_pool(h2UpgradePolicy="DO_NOT_UPGRADE"), ServicePort(1, "x", ""), ""),
        ({**_upgraded(1), **_pool(useClientProtocol=True)}, ServicePort(1, "x", ""), "explicit_http_config"),
        (_upgraded(2), ServicePort(1, "x", ""), ""),
    ],
)
def test_when_http_2_is_switched_on(policy: Object, port: ServicePort, mode: str) -> None:
    assert http2_mode(Http2.of(policy), port) == mode


def test_the_order_of_patches_does_not_depend_on_the_order_of_rules() -> None:
    rules = [rule("b", "svc.a"), rule("a", "svc")]
    services = service(HTTPS).get
    assert config_patches(rules, services, ["t"]) == config_patches(rules[::-1], services, ["t"])


@pytest.mark.parametrize(
    ("labels", "ingress"),
    [
        ({"gardener.cloud/role": "istio-ingress"}, True),
        ({"handler.exposureclass.gardener.cloud/name": ""}, True),
        ({"gardener.cloud/role": "x"}, False),
        ({}, False),
    ],
)
def test_namespaces_with_ingress_gateways(labels: dict[str, str], ingress: bool) -> None:
    assert is_ingress(labels) is ingress


def test_the_filter_goes_with_the_namespace_that_it_stems_from() -> None:
    found = envoy_filter("a", "uid", "t", [])
    assert found["metadata"]["name"] == "a-cluster-configuration"
    assert found["metadata"]["labels"] == {"resources.gardener.cloud/managed-by": "istio-cluster-configuration"}
    (owner,) = found["metadata"]["ownerReferences"]
    expected = {"kind": "Namespace", "name": "a", "uid": "uid", "controller": True, "blockOwnerDeletion": True}
    assert expected.items() <= owner.items()


def test_gateways_get_so_many_settings_from_a_namespace_and_no_more() -> None:
    ports = [{"port": number} for number in range(1, 20_000)]
    rules = [rule(f"r{number}") for number in range(9)]
    found = Patches({"t": []})
    steps = sum(1 for _ in compute_patches(found, rules, service(*ports).get))
    assert len(found.by_namespace["t"]) == MOST_PATCHES == 4 * MOST_PORTS
    assert [left.key.name for left in found.left_out] == [f"r{number}" for number in range(4, 9)]
    assert steps == len(rules)
