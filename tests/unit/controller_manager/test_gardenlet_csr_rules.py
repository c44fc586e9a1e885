"""Which CertificateSigningRequests are those of gardenlets, and what is queried about who made them."""

from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.certificate_signing_request import (
    USAGES,
    review,
    seeds_of_credentials,
    why_not,
)
from kit.signing.requests import CLIENT, csr_object, signing_request
from kube.objects import Object
from kube.signing_requests import is_pending, parse, with_decision

SEEDS = "gardener.cloud:system:seeds"
NAME = "gardener.cloud:system:seed:a"
GROUPS = ["system:bootstrappers", "system:bootstrappers:gardenlet", "system:authenticated"]
BOOTSTRAPPER = {"user": "system:bootstrap:abcdef", "groups": GROUPS}


def request(
    common_name: str = NAME, *, organizations: tuple[str, ...] = (SEEDS,), csr: Any = None, **requested: Any
) -> Object:
    body = signing_request(common_name, organizations=organizations, **requested)
    return csr_object(body, signer=CLIENT, **{**BOOTSTRAPPER, "usages": sorted(USAGES), **(csr or {})})


ALIEN = x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u")


NO_NAMES = ("", "A", "a_b", "a:b", "a.b", "-a", "a-", "a b", "a\n", "\u00e4", "\u0661", "\uff41", "a/b")


@pytest.mark.parametrize(
    ("csr", "fits"),
    [
        pytest.param(request(), True, id="as a gardenlet requests it"),
        pytest.param(request(csr={"usages": [*USAGES][::-1]}), True, id="usages in another order"),
        *(pytest.param(request(f"gardener.cloud:system:seed:{name}"), False, id=repr(name)) for name in NO_NAMES),
        pytest.param(request("system:seed:a"), False, id="another common name"),
        pytest.param(request(organizations=(SEEDS, "system:masters")), False, id="two organizations"),
        pytest.param(request(organizations=()), False, id="no organization"),
        pytest.param(request(organizations=("gardener.cloud:system:seed",)), False, id="another organization"),
        pytest.param(request(csr={"usages": ["client auth", "digital signature"]}), False, id="a usage missing"),
        pytest.param(request(csr={"usages": [*USAGES, "server auth"]}), False, id="one usage more"),
        pytest.param(request(csr={"usages": ["client auth"] * 2 + ["digital signature"]}), False, id="usages twice"),
        pytest.param(request(dns=["a"]), False, id="DNS name"),
        pytest.param(request(ips=["10.0.0.1"]), False, id="IP address"),
        pytest.param(request(others=[x509.RFC822Name("a@example.com")]), False, id="e-mail address"),
        pytest.param(request(others=[x509.UniformResourceIdentifier("spiffe://a")]), False, id="URI"),
        pytest.param(request(subject=[ALIEN]), False, id="more in the subject"),
        pytest.param(request(csr={"user": NAME, "groups": [SEEDS]}), True, id="renewal"),
        pytest.param(request(csr={"user": f"{NAME}b", "groups": [SEEDS]}), False, id="name of another gardenlet"),
    ],
)
def test_nothing_but_the_client_certificate_of_a_gardenlet_fits(csr: Object, fits: bool) -> None:
    assert (why_not(parse(csr)) == "") is fits


def test_two_common_names_are_one_too_many() -> None:
    body = signing_request([NAME, "system:admin"], organizations=[SEEDS])
    assert "common name" in why_not(parse(csr_object(body, signer=CLIENT, usages=sorted(USAGES))))


@given(usages=st.lists(st.sampled_from([*sorted(USAGES), "server auth"])))
def test_usages_are_these_three_and_no_others(usages: list[str]) -> None:
    assert (why_not(parse(request(csr={"usages": usages}))) == "") is (sorted(usages) == sorted(USAGES))


def test_the_review_is_about_the_user_of_the_request() -> None:
    csr = request()
    csr["spec"] |= {"uid": "u", "extra": {"k": ["v"]}}
    requested = review(csr)["spec"]
    assert (requested["user"], requested["uid"], requested["groups"], requested["extra"]) == (
        "system:bootstrap:abcdef",
        "u",
        GROUPS,
        {"k": ["v"]},
    )
    assert requested["resourceAttributes"]["subresource"] == "seedclient"


def test_a_decision_ends_the_wait() -> None:
    csr = request()
    assert is_pending(csr)
    assert not is_pending(with_decision(csr, "Approved", "R", "m"))
    assert is_pending(csr)


FOR = "system:bootstrappers:gardenlet:seed:"


@pytest.mark.parametrize(
    ("user", "groups", "made_for"),
    [
        ("gardener.cloud:system:seed:soil", [SEEDS], [("soil", "")]),
        ("system:bootstrap:abcdef", GROUPS, None),
        ("system:bootstrap:abcdef", [*GROUPS, f"{FOR}soil"], [("soil", "")]),
        ("system:bootstrap:abcdef", [*GROUPS, f"{FOR}soil:by:sand"], [("soil", "sand")]),
        ("system:bootstrap:abcdef", [f"{FOR}soil", f"{FOR}sand"], [("soil", ""), ("sand", "")]),
        ("system:bootstrap:abcdef", [f"{FOR}"], [("", "")]),
        ("system:serviceaccount:garden:gardenlet-bootstrap-soil", [], [("soil", "")]),
        ("system:serviceaccount:garden-dev:gardenlet-bootstrap-soil", [], None),
        ("admin", ["system:masters"], None),
    ],
)
def test_credentials_are_valid_for_the_seed_that_they_name(
    user: str, groups: list[str], made_for: list[tuple[str, str]] | None
) -> None:
    assert seeds_of_credentials(parse(request(csr={"user": user, "groups": groups}))) == made_for
