"""Address on this computer at which the gardenlet of a Seed serves flows, as its Lease reports it."""

import pytest

from gardener.garden.seeds import LOCAL_GARDENLET, local_gardenlet_url
from kube.objects import Object


def lease(address: object) -> Object:
    return {"metadata": {"annotations": {LOCAL_GARDENLET: address}}}


@pytest.mark.parametrize("url", ["http://127.0.0.1:2729", "http://127.0.0.2:2729", "http://[::1]:2729"])
def test_a_gardenlet_is_found_on_its_computer(url: str) -> None:
    found = lease(f"here {url}")
    assert local_gardenlet_url(found, "here") == url
    assert local_gardenlet_url(found, "there") == ""


@pytest.mark.parametrize(
    "address",
    [
        None,
        7,
        "",
        "here",
        "here http://10.0.0.1:80",
        "here http://example.com:80",
        "here http://127.0.0.1",
        "here http://127.0.0.1:x",
        "here http://127.0.0.1:99999",
        "here http://127.0.0.1@example.com:80",
        "here http://[",
    ],
)
def test_a_lease_leads_to_this_computer_only(address: object) -> None:
    assert local_gardenlet_url(lease(address), "here") == ""
    assert local_gardenlet_url({}, "here") == ""


def test_a_lease_leads_to_no_other_path() -> None:
    assert local_gardenlet_url(lease("here ftp://a:b@127.0.0.1:80/x?y#z"), "here") == "http://127.0.0.1:80"
