"""How a gardenlet requests its certificate, when it renews it, and what its Seed reports about it."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from agent.gardenlet.bootstrap.rules.certificate import (
    USAGES,
    Life,
    failure_text,
    gardenlet_of,
    is_same_request,
    refusal,
    renewal,
    request_name,
    said_of,
    signed,
    signing_request,
    wake_up,
)
from kube.objects import Object
from kube.signing_requests import holder_of, make_request, parse, public_key
from kube.x509 import Pair, make_ca, make_client, make_key

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
TEN_DAYS = Life(BEGIN, BEGIN + timedelta(days=10), b"\x80" + bytes(31))
"""Its digest stands for the middle between least and most."""


def certificate(*, name: str = "a", lifetime: timedelta = timedelta(days=10)) -> Pair:
    ca = make_ca("ca", now=BEGIN, lifetime=timedelta(days=3650))
    return make_client(ca, name, ["g"], now=BEGIN, lifetime=lifetime, slack=timedelta(0))


@pytest.mark.parametrize("seed", ["local", "s" * 63])
def test_the_request_has_what_makes_a_gardenlet(seed: str) -> None:
    key, holder = make_key(), gardenlet_of(seed)
    name = request_name(public_key(key), holder)
    made = signing_request(name, make_request(key, holder), seconds=None)
    requested = parse(made).requested
    assert requested.common_names == (f"gardener.cloud:system:seed:{seed}",)
    assert requested.organizations == ("gardener.cloud:system:seeds",)
    assert not requested.dns_names | requested.others
    assert made["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client"
    assert made["spec"]["usages"] == ["digital signature", "key encipherment", "client auth"]
    assert "expirationSeconds" not in made["spec"]
    assert signing_request(name, b"", seconds=7200)["spec"]["expirationSeconds"] == 7200


def test_the_name_of_a_request_depends_on_key_and_subject() -> None:
    # Computed with openssl from the definition: SHA-512/256 over base64 fields that end in a bar.
    assert request_name(b"key", gardenlet_of("local")) == "seed-csr-gPXLtkki8kB4ngQHNkLuhrbQcfHwQFSggGcQGH4du_Y"
    assert request_name(b"key", gardenlet_of("other")) != request_name(b"key", gardenlet_of("local"))
    assert request_name(b"yek", gardenlet_of("local")) != request_name(b"key", gardenlet_of("local"))


def test_a_request_that_is_there_is_taken_if_it_requests_the_same_with_the_same_key() -> None:
    key, holder = make_key(), gardenlet_of("local")
    one = signing_request("n", make_request(key, holder), seconds=None)
    again = signing_request("n", make_request(key, holder), seconds=None)
    assert is_same_request(one, again), "a signature differs each time"
    assert not is_same_request(signing_request("n", make_request(make_key(), holder), seconds=None), again)
    assert not is_same_request({**one, "spec": {**one["spec"], "usages": list(USAGES[1:])}}, again)
    assert not is_same_request({**one, "spec": {**one["spec"], "signerName": "x"}}, again)
    assert not is_same_request({"spec": {**one["spec"], "request": "nonsense"}}, again)


def decided(kind: str, **more: str) -> Object:
    return {"metadata": {"uid": "u"}, "status": {"conditions": [{"type": kind, "status": "True", **more}]}}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"metadata": {"uid": "u"}}, ""),
        (decided("Approved"), ""),
        (decided("Denied", reason="R", message="no"), "it is denied: R: no"),
        (decided("Failed"), "it is failed: no reason is given"),
        ({"metadata": {"uid": "other"}}, "another request with this name has replaced it"),
    ],
)
def test_what_ends_the_wait_for_a_certificate(request_: Object, reason: str) -> None:
    assert refusal(request_, asked_as="u") == reason


def test_what_was_signed_is_read() -> None:
    assert signed({}) == b""
    assert signed({"status": {"certificate": base64.b64encode(b"pem").decode()}}) == b"pem"
    with pytest.raises(ValueError, match="base64"):
        signed({"status": {"certificate": "not ours!"}})


def test_a_renewed_certificate_is_for_the_same_holder() -> None:
    held = holder_of(certificate(name="long" * 20).certificate)
    requested = parse(signing_request("n", make_request(make_key(), held), seconds=None)).requested
    assert requested.common_names == (held.common_name,)
    assert requested.organizations == ("g",)


@pytest.mark.parametrize(
    ("digest", "least", "most", "share"),
    [
        (b"\x00" * 32, 70, 90, 0.7),
        (b"\x80" + bytes(31), 70, 90, 0.8),
        (b"\xff" * 32, 70, 90, 0.9),
        (b"\x80" + bytes(31), 1, 2, 0.015),
    ],
)
def test_a_certificate_is_renewed_within_the_configured_part_of_its_life(
    digest: bytes, least: int, most: int, share: float
) -> None:
    life = Life(TEN_DAYS.since, TEN_DAYS.until, digest)
    due = renewal(life, least=least, most=most)
    assert abs(due - (life.since + timedelta(days=10) * share)) < timedelta(seconds=1)


def test_the_time_of_renewal_is_the_certificates_own() -> None:
    pairs = [certificate() for _ in range(20)]
    moments = [renewal(Life.of(each.certificate), least=70, most=90) for each in pairs]
    assert moments == [renewal(Life.of(each.certificate), least=70, most=90) for each in pairs]
    assert len(set(moments)) == 20, "they are spread"


@pytest.mark.parametrize(
    ("days", "seconds"),
    [(0, 5 * 86400), (6, 2.5 * 86400), (9, 86400), (11, float("inf"))],
)
def test_the_next_look_is_when_something_changes(days: int, seconds: float) -> None:
    moments = [BEGIN + timedelta(days=5)]
    assert wake_up(TEN_DAYS, now=BEGIN + timedelta(days=days), moments=moments) == seconds


@pytest.mark.parametrize(
    ("days", "failure", "status", "reason", "message"),
    [
        (1, "", "True", "CertificateValid", "The certificate for the garden expires at 2024-01-11T00:00:00Z."),
        (8, "denied", "True", "CertificateValid", "The last attempt to renew it failed: denied"),
        (8.6, "", "False", "CertificateExpiresSoon", "and has not been renewed."),
        (8.6, "denied", "False", "CertificateExpiresSoon", "The last attempt to renew it failed: denied"),
        (10, "", "False", "CertificateExpired", "The certificate for the garden expired at 2024-01-11T00:00:00Z."),
    ],
)
def test_the_seed_warns_of_a_certificate_that_is_not_renewed(
    days: float, failure: str, status: str, reason: str, message: str
) -> None:
    reported = said_of(TEN_DAYS, now=BEGIN + timedelta(days=days), failure=failure)
    assert (reported.type, reported.status, reported.reason) == ("GardenletCertificate", status, reason)
    assert message in reported.message


def test_a_failed_renewal_reports_how_long_there_is_still_time() -> None:
    now = BEGIN + timedelta(days=9, hours=22, minutes=30)
    assert failure_text(TEN_DAYS, now=now, error="it is denied") == (
        "Failed to rotate the kubeconfig for the Garden API Server. "
        "Certificate expires in 1h30m0s (2024-01-11T00:00:00Z): it is denied"
    )
    assert "expires in 0s" in failure_text(TEN_DAYS, now=now + timedelta(days=9), error="x")
