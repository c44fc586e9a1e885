"""Through which ingress gateway a Shoot is reached."""

import pytest

from agent.gardenlet.shoot.main.rules.gateways import Gateway, GatewayError, gateway
from config.gardenlet import decode
from kube.objects import Object

CONFIG = """\
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
seedConfig: {metadata: {name: s}}
"""
USUAL = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
OF_HANDLERS = {"app": "istio-ingressgateway", "gardener.cloud/role": "exposureclass-handler"}
HANDLERS = """\
exposureClassHandlers:
- name: inner
- name: outer
  sni: {ingress: {namespace: out, serviceName: way, labels: {a: b}}}
"""


@pytest.mark.parametrize(
    ("config", "handler", "expected"),
    [
        ("", None, Gateway("istio-ingress", "istio-ingressgateway", USUAL)),
        ("sni: {ingress: {namespace: n, serviceName: s, labels: {c: d}}}", None, Gateway("n", "s", {"c": "d"})),
        (HANDLERS, None, Gateway("istio-ingress", "istio-ingressgateway", USUAL)),
        (HANDLERS, "inner", Gateway("istio-ingress-handler-inner", "istio-ingressgateway", OF_HANDLERS)),
        (HANDLERS, "outer", Gateway("out", "way", {"a": "b"})),
    ],
)
def test_it_is_the_usual_one_or_that_of_the_exposure_class(config: str, handler: str | None, expected: Gateway) -> None:
    exposure_class: Object | None = {"metadata": {"name": "c"}, "handler": handler} if handler else None
    assert gateway(decode(CONFIG + config).config, exposure_class) == expected


def test_a_handler_that_the_seed_does_not_have_is_named() -> None:
    with pytest.raises(GatewayError, match="ExposureClass c names the handler 'other'") as raised:
        gateway(decode(CONFIG + HANDLERS).config, {"metadata": {"name": "c"}, "handler": "other"})
    assert raised.value.codes == ("ERR_CONFIGURATION_PROBLEM",)
