"""The certificate of a gardenlet: its request, its renewal, and its condition."""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener import keys
from gardener.conditions import GARDENLET_CERTIFICATE
from kube.clock import format_duration, format_time
from kube.conditions import Condition
from kube.objects import Object, condition, mapping, spec, text, texts, uid
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.signing_requests import DENIED, KUBE_APISERVER_CLIENT, Holder, client, public_key_of_request, signer_of
from kube.x509 import Certificate, digest

USAGES = ("digital signature", "key encipherment", "client auth")
FAILED = "Failed"
REASON_VALID = "CertificateValid"
REASON_EXPIRES_SOON = "CertificateExpiresSoon"
REASON_EXPIRED = "CertificateExpired"
SCARCE = 0.15
"""Remaining share of the lifetime at which a renewal is long overdue."""


def gardenlet_of(seed: str) -> Holder:
    return client(f"{keys.SEED_USER_PREFIX}{seed}", [keys.SEEDS_GROUP])


# --- the request


def request_name(key: bytes, holder: Holder) -> str:
    """Name derived from the content: equal requests have the same name. `key` is the public key, PKIX as DER."""
    fields = [key, *(each.encode() for each in (holder.common_name, *holder.organizations, *USAGES))]
    summed = hashlib.new("sha512_256", b"".join(_base64(field) + b"|" for field in fields)).digest()
    return f"seed-csr-{_base64(summed).decode()}"


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signing_request(name: str, pem: bytes, *, seconds: int | None) -> Object:
    """Build a CertificateSigningRequest from a PKCS#10; `seconds` is its lifetime, None if the signer decides."""
    wanted: Object = {
        "request": base64.b64encode(pem).decode(),
        "signerName": KUBE_APISERVER_CLIENT,
        "usages": list(USAGES),
    }
    if seconds is not None:
        wanted["expirationSeconds"] = seconds
    return {**CERTIFICATE_SIGNING_REQUESTS.type_meta, "metadata": {"name": name}, "spec": wanted}


def is_same_request(present: Object, requested: Object) -> bool:
    """Whether an existing request has the same content and the same key."""
    one, other = (_key_of(each) for each in (present, requested))
    same_usages = sorted(texts(spec(present).get("usages"))) == sorted(texts(spec(requested).get("usages")))
    return one is not None and one == other and same_usages and signer_of(present) == signer_of(requested)


def _key_of(request: Object) -> bytes | None:
    try:
        return public_key_of_request(base64.b64decode(text(spec(request).get("request"))))
    except ValueError:
        return None


def refusal(request: Object, *, asked_as: str) -> str:
    """Reason why a request will not be signed; empty if it may be. `asked_as` is its uid at creation."""
    if uid(request) != asked_as:
        return "another request with this name has replaced it"
    for kind in (DENIED, FAILED):
        if found := condition(request, kind):
            reported = [text(found.get("reason")), text(found.get("message"))]
            return f"it is {kind.lower()}: {': '.join(filter(None, reported)) or 'no reason is given'}"
    return ""


def signed(request: Object) -> bytes:
    """Return the certificate as PEM; empty if there is none yet.

    Raises:
        ValueError: it is not valid base64.
    """
    return base64.b64decode(text(mapping(request.get("status")).get("certificate")), validate=True)


# --- the validity


@dataclass(frozen=True, slots=True)
class Life:
    """Validity of a certificate, and its digest."""

    since: datetime
    until: datetime
    digest: bytes
    """SHA-256 of the certificate as DER."""

    @classmethod
    def of(cls, certificate: Certificate) -> "Life":
        return cls(certificate.not_valid_before_utc, certificate.not_valid_after_utc, digest(certificate))

    def after(self, share: float) -> datetime:
        return self.since + (self.until - self.since) * share

    def is_over(self, now: datetime) -> bool:
        return now >= self.until

    def left(self, now: datetime) -> float:
        """Remaining share of the lifetime, between 0 and 1."""
        whole = self.until - self.since
        return min(max((self.until - now) / whole, 0.0), 1.0) if whole > timedelta(0) else 0.0


def renewal(life: Life, *, least: int, most: int) -> datetime:
    """Time of the renewal: between two percentages of the lifetime, always the same for a certificate.

    It depends on the digest, so that many gardenlets with certificates of the same age don't renew them all at once.
    """
    share = int.from_bytes(life.digest[:8], "big") / 2**64
    return life.after((least + (most - least) * share) / 100)


def wake_up(life: Life, *, now: datetime, moments: Iterable[datetime]) -> float:
    """Seconds until the next of these moments, the end of the renewal period, or the expiry; infinite if all have
    passed.
    """
    coming = [each for each in (*moments, life.after(1 - SCARCE), life.until) if each > now]
    return (min(coming) - now).total_seconds() if coming else float("inf")


def said_of(life: Life, *, now: datetime, failure: str = "") -> Condition:
    """Condition of the Seed; `failure` is the error of the last attempt to renew the certificate."""
    until, tried = format_time(life.until), f" The last attempt to renew it failed: {failure}" if failure else ""
    if life.is_over(now):
        message = f"The certificate for the garden expired at {until}.{tried}"
        return Condition(GARDENLET_CERTIFICATE, "False", REASON_EXPIRED, message)
    if life.left(now) < SCARCE:
        message = f"The certificate for the garden expires at {until} and has not been renewed.{tried}"
        return Condition(GARDENLET_CERTIFICATE, "False", REASON_EXPIRES_SOON, message)
    message = f"The certificate for the garden expires at {until}.{tried}"
    return Condition(GARDENLET_CERTIFICATE, "True", REASON_VALID, message)


def failure_text(life: Life, *, now: datetime, error: str) -> str:
    """Message of the Event for a failed renewal."""
    left = format_duration(max(int((life.until - now).total_seconds()), 0))
    return (
        "Failed to rotate the kubeconfig for the Garden API Server. "
        f"Certificate expires in {left} ({format_time(life.until)}): {error}"
    )
