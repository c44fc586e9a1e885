"""Kubeconfigs for Shoots: what is in them, how long they are valid, and what they can't be made of."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from gardenapi.api import Role
from kit.objects import encoded
from kube.objects import Object
from localprocesses.pki import Authority
from webhooks.tokens.kubeconfigs import lifetime_of
from webhooks.tokens.requests import Refused
from webhooks.tokens.shoot_kubeconfig import CannotIssue, NoAuthority, issue

HOUR = timedelta(hours=1)
ADDRESSES = {
    "external": "https://api.s.example.com",
    "service-account-issuer": "https://issuer.example.com",
    "internal": "https://api.s.internal.example.com",
    "unmanaged": "",
    "wildcard-tls-seed-bound": "https://api-s.ingress.example.com",
}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("clients")


def data_of(certificate: Authority, key: Authority) -> Object:
    data: Object = encoded({"ca.crt": certificate.bundle, "ca.key": key.key_pair().key})
    return data


def made(
    authority: Object | None, *, now: datetime | None = None, lifetime: timedelta = HOUR, **changed: Any
) -> tuple[Object, datetime]:
    requested: Any = {"name": "garden-dev--s", "addresses": ADDRESSES, "cluster": "PEM", "user": "ann", "group": "g"}
    content, expires = issue(
        **requested | changed, authority=authority, now=now or datetime.now(UTC), lifetime=lifetime
    )
    return json.loads(content), expires


@pytest.mark.parametrize("role", Role)
def test_a_kubeconfig_is_signed_for_its_user(authority: Authority, role: Role) -> None:
    config, expires = made(data_of(authority, authority), group=role.group)
    names = [f"garden-dev--s-{address}" for address in ("external", "internal", "wildcard-tls-seed-bound")]
    assert [each["name"] for each in config["clusters"]] == names
    assert config["clusters"][2]["cluster"] == {"server": "https://api-s.ingress.example.com"}
    assert config["current-context"] == "garden-dev--s-external"
    assert config["clusters"][0]["cluster"] == {
        "server": "https://api.s.example.com",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
    }
    pem = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    certificate = x509.load_pem_x509_certificate(pem)
    assert certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == role.group
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "ann"
    certificate.verify_directly_issued_by(authority.certificate)
    assert abs(expires - datetime.now(UTC) - HOUR) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("requested", "given"),
    [(timedelta(seconds=1), timedelta(minutes=10)), (2 * HOUR, 2 * HOUR), (timedelta(days=9), timedelta(days=1))],
)
def test_a_kubeconfig_lives_between_ten_minutes_and_a_day(
    authority: Authority, requested: timedelta, given: timedelta
) -> None:
    now = datetime.now(UTC)
    _, expires = made(data_of(authority, authority), now=now, lifetime=requested)
    assert expires - now == given


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"addresses": {}},
            "no suitable advertised address for kube-apiserver found in .status.advertisedAddresses; the gardenlet adds it",
        ),
        ({"addresses": {"service-account-issuer": "https://x"}}, "no suitable advertised address"),
        ({"cluster": ""}, "CA of its API server is unknown; the gardenlet writes it"),
    ],
)
def test_what_is_missing_is_named(authority: Authority, changed: Object, message: str) -> None:
    with pytest.raises(CannotIssue, match=message):
        made(data_of(authority, authority), **changed)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "it does not exist"),
        *(
            (data, "the authority is missing or not readable")
            for data in ({}, {"ca.crt": "!"}, {"ca.crt": "eA==", "ca.key": "eA=="})
        ),
    ],
)
def test_an_authority_that_can_not_sign_is_named(data: Object | None, problem: str) -> None:
    reported = f"could not get client CA secret: {problem}; the gardenlet writes it to InternalSecret SHOOT.ca-client"
    with pytest.raises(NoAuthority, match=reported):
        made(data)


@pytest.mark.parametrize(
    ("seconds", "answer"),
    [
        (None, HOUR),
        (600, timedelta(minutes=10)),
        (1 << 32, timedelta(seconds=1 << 32)),
        (599, "422 spec.expirationSeconds: may not specify a duration less than 10 minutes"),
        (-1, "422 spec.expirationSeconds: may not specify a duration less than 10 minutes"),
        ((1 << 32) + 1, "422 spec.expirationSeconds: may not specify a duration larger than 2^32 seconds"),
        ("1h", "400 spec.expirationSeconds: must be a whole number of seconds"),
        (True, "400 spec.expirationSeconds: must be a whole number of seconds"),
        (900.5, "400 spec.expirationSeconds: must be a whole number of seconds"),
    ],
)
def test_the_time_that_is_requested_is_checked(seconds: object, answer: timedelta | str) -> None:
    try:
        found: timedelta | str = lifetime_of({"spec": {"expirationSeconds": seconds}})
    except Refused as error:
        found = f"{error.status} {error}"
    assert found == answer


def test_a_kubeconfig_does_not_outlive_its_authority(authority: Authority) -> None:
    end, data = authority.certificate.not_valid_after_utc, data_of(authority, authority)
    assert made(data, now=end - timedelta(minutes=30))[1] == end
    assert made(data, now=end - 2 * HOUR)[1] == end - HOUR
    with pytest.raises(CannotIssue, match="has expired"):
        made(data, now=end)


def test_a_key_of_another_authority_signs_nothing(authority: Authority) -> None:
    other = data_of(authority, Authority.create("other"))
    with pytest.raises(CannotIssue, match="a key that does not belong to its certificate"):
        made(other)
