"""Which ingress gateways a seed has, and through which of them a Shoot is reached."""

from typing import Any

import pytest

from agent.gardenlet.shoot.main.rules.domains import Served
from agent.gardenlet.shoot.main.tasks import exposure
from components import namespaces
from components.gateways import (
    Gateway,
    GatewayError,
    nearest,
    of_leaving_shoot,
    of_seed,
    of_shoot,
    service_annotations,
    traffic_policy,
    usual,
)
from config.gardenlet import decode
from config.gardenlet.schema import GardenletConfiguration
from kit.shoot_components import bare_operation
from kube.objects import Object, annotations, key, labels

CONFIG = """\
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
seedConfig: {metadata: {name: s}}
"""
USUAL = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
HANDLERS = """\
exposureClassHandlers:
- name: inner
  loadBalancerService: {annotations: {load-balancer: internal}}
- name: outer
  sni: {ingress: {namespace: out, serviceName: way, serviceExternalIP: 192.0.2.1, labels: {a: b}}}
"""
WITH_ISTIO = "images: {istioDiscovery: d, istioProxy: p}\n"


def config(text: str = "") -> GardenletConfiguration:
    return decode(CONFIG + text).config


def of_handler(name: str) -> dict[str, str]:
    return {"gardener.cloud/role": "exposureclass-handler", "handler.exposureclass.gardener.cloud/name": name}


def seed(*zones: str, **settings: Any) -> Object:
    return {"spec": {"provider": {"zones": list(zones)}, "settings": {"loadBalancerServices": settings}}}


def gateway(namespace: str, pods: dict[str, str], **fields: Any) -> Gateway:
    return Gateway(namespace=namespace, labels=pods, **{"service": "istio-ingressgateway", **fields})


INNER = gateway(
    "istio-ingress-handler-inner",
    {"app": "istio-ingressgateway", **of_handler("inner")},
    annotations={"load-balancer": "internal"},
)
OUTER = gateway("out", {"a": "b", **of_handler("outer")}, service="way", address="192.0.2.1")


@pytest.mark.parametrize(
    ("written", "handler", "expected"),
    [
        ("", None, gateway("istio-ingress", USUAL)),
        (
            "sni: {ingress: {namespace: n, serviceName: s, labels: {c: d}}}",
            None,
            gateway("n", {"c": "d"}, service="s"),
        ),
        (HANDLERS, None, gateway("istio-ingress", USUAL)),
        (HANDLERS, "inner", INNER),
        (HANDLERS, "outer", OUTER),
    ],
)
def test_it_is_the_usual_one_or_that_of_the_exposure_class(
    written: str, handler: str | None, expected: Gateway
) -> None:
    exposure_class: Object | None = {"metadata": {"name": "c"}, "handler": handler} if handler else None
    assert of_shoot(config(written), exposure_class) == expected


def test_a_handler_that_the_seed_does_not_have_is_named() -> None:
    with pytest.raises(GatewayError, match="ExposureClass c names the handler 'other'") as raised:
        of_shoot(config(HANDLERS), {"metadata": {"name": "c"}, "handler": "other"})
    assert raised.value.codes == ("ERR_CONFIGURATION_PROBLEM",)


async def test_of_a_shoot_that_leaves_it_need_not_be_known() -> None:
    """There is nothing by which a task could change what is there."""
    forgotten = {"metadata": {"name": "c"}, "handler": "other"}
    assert of_leaving_shoot(config(HANDLERS), {**forgotten, "handler": "inner"}) == INNER
    gateway = of_leaving_shoot(config(HANDLERS), forgotten)
    operation = bare_operation(config=config(), gateway=gateway, internal=Served("h", "p", "", {}))
    for unit in (exposure.AT_GATEWAY, exposure.INTERNAL_NAME):
        await unit.deploy(operation)
    await exposure.wait_for_address(operation)


@pytest.mark.parametrize(
    ("pods", "zone", "expected"),
    [
        (USUAL, "a", {**USUAL, "istio": "ingressgateway--zone--a"}),
        ({"c": "d"}, "a", {"c": "d", "istio": "ingressgateway--zone--a"}),
        (INNER.labels, "a", {**INNER.labels, "gardener.cloud/role": "exposureclass-handler--zone--a"}),
    ],
)
def test_the_one_of_a_zone_has_its_own_pods(pods: dict[str, str], zone: str, expected: dict[str, str]) -> None:
    found = gateway("istio-ingress", pods, address="192.0.2.1").in_zone(zone)
    assert found == gateway("istio-ingress--a", expected, zone="a")


def test_names_of_a_zone_are_never_too_long() -> None:
    found = usual(config()).in_zone("z" * 60)
    assert (found.namespace, found.labels["istio"]) == ("istio-ingress--a1d2c", "ingressgateway--zone--a1d2c")


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ([], ["istio-ingress", "istio-ingress-handler-inner", "out"]),
        (["a"], ["istio-ingress", "istio-ingress-handler-inner", "out"]),
        (
            ["a", "b"],
            [
                *("istio-ingress", "istio-ingress-handler-inner", "out"),
                *("istio-ingress--a", "istio-ingress--b", "istio-ingress-handler-inner--a"),
                *("istio-ingress-handler-inner--b", "out--a", "out--b"),
            ],
        ),
    ],
)
def test_several_zones_have_gateways_of_their_own(zones: list[str], expected: list[str]) -> None:
    assert [each.namespace for each in of_seed(config(HANDLERS), zones)] == expected


@pytest.mark.parametrize(
    ("written", "of_the_seed", "zones", "expected"),
    [
        (WITH_ISTIO, ["a", "b"], ["b"], "istio-ingress--b"),
        (WITH_ISTIO, ["a", "b"], ["a", "b"], "istio-ingress"),
        (WITH_ISTIO, ["a", "b"], [], "istio-ingress"),
        (WITH_ISTIO, ["a"], ["a"], "istio-ingress"),
        ("", ["a", "b"], ["b"], "istio-ingress"),  # others deploy it
    ],
)
def test_what_runs_in_one_zone_is_reached_there(
    written: str, of_the_seed: list[str], zones: list[str], expected: str
) -> None:
    own = config(written)
    assert nearest(usual(own), own, seed=seed(*of_the_seed), zones=zones).namespace == expected


SETTINGS = {
    "annotations": {"load-balancer": "external", "of": "seed"},
    "externalTrafficPolicy": "Local",
    "zones": [{"name": "a", "annotations": {"load-balancer": "zonal"}}],
}


@pytest.mark.parametrize(
    ("of_service", "expected", "policy"),
    [
        (gateway("n", {}), {"load-balancer": "external", "of": "seed"}, "Local"),
        (INNER, {"load-balancer": "internal", "of": "seed"}, "Local"),
        (INNER.in_zone("a"), {"load-balancer": "zonal"}, ""),
        (INNER.in_zone("b"), {"load-balancer": "external", "of": "seed"}, "Local"),
    ],
    ids=["the usual one", "of a handler", "of a zone", "of a zone without settings"],
)
def test_services_are_as_the_seed_and_the_handler_report(
    of_service: Gateway, expected: dict[str, str], policy: str
) -> None:
    assert service_annotations(of_service, seed("a", "b", **SETTINGS)) == expected
    assert traffic_policy(of_service, seed("a", "b", **SETTINGS)) == policy


def test_namespaces_state_whose_gateway_they_have_and_where_its_pods_run() -> None:
    gateways = [usual(config()), INNER, INNER.in_zone("b")]
    _, *found = namespaces.of_istio(system="istio-system", gateways=gateways, zones=["a", "b"])
    role, handler = "gardener.cloud/role", "handler.exposureclass.gardener.cloud/name"
    zones, pinned = (f"high-availability-config.resources.gardener.cloud/{each}" for each in ("zones", "zone-pinning"))
    assert [(labels(each)[role], labels(each).get(handler), labels(each).get("istio")) for each in found] == [
        ("istio-ingress", None, "ingressgateway"),
        ("exposureclass-handler", "inner", None),
        ("exposureclass-handler--zone--b", "inner", None),
    ]
    assert [(annotations(each)[zones], annotations(each).get(pinned)) for each in found] == [
        ("a,b", None),
        ("a,b", None),
        ("b", "true"),
    ]
    assert [key(each).name for each in found] == [each.namespace for each in gateways]
