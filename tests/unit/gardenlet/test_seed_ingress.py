"""The address of a seed's ingress gateway, and its DNS record."""

from typing import Any

import pytest

from agent.gardenlet.seed.main import ingress
from gardener.api.garden import SEEDS
from kit.garden_objects import garden_object
from kube.objects import Object


def seed(**spec: Any) -> Object:
    found: Object = garden_object(SEEDS)
    dns = {"provider": {"type": "local", "secretRef": {"name": "s", "namespace": "garden"}}}
    return {**found, "spec": {**found["spec"], "dns": dns, "ingress": {"domain": "in.example.com"}, **spec}}


def service(*entries: Object) -> Object:
    return {"status": {"loadBalancer": {"ingress": list(entries)}}}


@pytest.mark.parametrize(
    ("address", "record_type"), [("192.0.2.1", "A"), ("2001:db8::1", "AAAA"), ("lb.example.com", "CNAME")]
)
def test_the_type_of_the_record_is_that_of_the_address(address: str, record_type: str) -> None:
    found = ingress.record(seed(), address=address)
    assert found is not None
    assert (found["spec"]["recordType"], found["spec"]["values"]) == (record_type, [address])
    assert found["spec"]["name"] == "*.in.example.com"
    assert found["spec"]["type"] == "local"


@pytest.mark.parametrize("lacking", ["dns", "ingress"])
def test_without_a_domain_or_a_provider_there_is_no_record(lacking: str) -> None:
    assert ingress.record(seed(**{lacking: None}), address="192.0.2.1") is None


@pytest.mark.parametrize(("families", "stack"), [(None, "ipv4"), (["IPv6"], "ipv6"), (["IPv4", "IPv6"], "dual-stack")])
def test_the_record_states_which_families_of_addresses_there_are(families: list[str] | None, stack: str) -> None:
    found = ingress.record(seed(networks={"ipFamilies": families}), address="192.0.2.1")
    assert found is not None
    assert found["metadata"]["annotations"] == {"dns.gardener.cloud/ip-stack": stack}


@pytest.mark.parametrize(
    ("live", "text"),
    [
        (None, "it does not exist yet; check whether the resource manager, which creates it, runs"),
        ({}, "it has no address; check whether a controller for load balancers runs"),
        (service({}), "it has no address; check whether a controller for load balancers runs"),
        (service({}, {"hostname": "lb.example.com"}), ""),
        (service({"ip": "192.0.2.1"}), ""),
    ],
)
def test_what_is_missing_until_there_is_an_address(live: Object | None, text: str) -> None:
    assert ingress.without_address(live) == text
