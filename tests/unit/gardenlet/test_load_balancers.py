"""Address and port of a load balancer, from its Service."""

import pytest

from agent.gardenlet.shoot.main.rules.load_balancers import published
from kube.objects import Object

OWN = [{"port": 2379}, {"port": 8080}]


def _ports(*numbers: int) -> list[Object]:
    return [{"port": each, "protocol": "TCP"} for each in numbers]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"ip": "192.0.2.1"}, ("192.0.2.1", 8080)),
        ({"hostname": "lb.example.com"}, ("lb.example.com", 8080)),
        ({"ip": "127.0.0.1", "ports": _ports(40001, 40002)}, ("127.0.0.1", 40002)),
        ({"ip": "192.0.2.1", "ports": _ports(8080, 2379)}, ("192.0.2.1", 8080)),
        ({"ip": "192.0.2.1", "ports": _ports(40001)}, ("192.0.2.1", 8080)),
    ],
)
def test_a_load_balancer_may_have_other_ports_than_its_service(entry: Object, expected: tuple[str, int]) -> None:
    service: Object = {"spec": {"ports": OWN}, "status": {"loadBalancer": {"ingress": [entry]}}}
    assert published(service, 8080) == expected


@pytest.mark.parametrize("service", [None, {}, {"spec": {"ports": OWN}, "status": {"loadBalancer": {}}}])
def test_a_service_without_a_load_balancer_has_no_address(service: Object | None) -> None:
    assert published(service, 8080) == ("", 8080)
