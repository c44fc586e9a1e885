"""A certificate for the garden: the request, and the wait for its signature.

The controller manager of the garden or a human approves the request, and the garden's signer signs it. It is polled
every two seconds for a quarter of an hour. A response that is not the API server's is no reason to give up: a new
request would need another approval.
"""

from dataclasses import dataclass

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rules.certificate import (
    is_same_request,
    refusal,
    request_name,
    signed,
    signing_request,
)
from kube.errors import AlreadyExists, KubeError
from kube.objects import Object, spec, text, uid
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.runtime.client import Client
from kube.signing_requests import Holder, make_request, public_key
from kube.x509 import UnusablePair, key_pem, make_key, read_pair

ATTEMPT_SECONDS = 900.0
_LOOK_SECONDS = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class NotSigned(Exception):
    """There is no certificate; the text names the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    certificate: bytes
    """PEM, like `key`."""
    key: bytes
    request: str
    """Name of the CertificateSigningRequest."""
    user: str
    """Creator of the request, as reported by the API server."""

    def __repr__(self) -> str:
        return f"Issued({self.request})"


async def certificate_for(client: Client, holder: Holder, *, seconds: int | None, pace: Pace) -> Issued:
    """Request a certificate from the garden, and wait for it.

    `seconds` is the requested lifetime; None if the signer decides.

    Raises:
        NotSigned: no certificate was issued in time.
    """
    key = make_key()
    name, until = request_name(public_key(key), holder), pace.now() + ATTEMPT_SECONDS
    requested = signing_request(name, make_request(key, holder), seconds=seconds)
    try:
        made = await pace.patiently(f"create {_called(name)}", lambda: _create(client, requested), until=until)
        log.info("Waiting for the approval of a certificate for the garden", request=name)
        content = await _waited_for(client, made, pace=pace, until=until)
        read_pair(content, key_pem(key))
    except KubeError as error:
        raise NotSigned(f"{_called(name)}: {error}") from error
    except (ValueError, UnusablePair) as error:
        raise NotSigned(f"{_called(name)}: the signed certificate is unusable: {error}") from error
    return Issued(certificate=content, key=key_pem(key), request=name, user=text(spec(made).get("username")))


async def _create(client: Client, requested: Object) -> Object:
    try:
        return await client.create(CERTIFICATE_SIGNING_REQUESTS, requested)
    except AlreadyExists:
        # The response to an earlier attempt may have been lost.
        name = requested["metadata"]["name"]
        present = await client.get(CERTIFICATE_SIGNING_REQUESTS, name)
        if not is_same_request(present, requested):
            raise NotSigned(f"{_called(name)} already exists with other content; delete it") from None
        return present


async def _waited_for(client: Client, made: Object, *, pace: Pace, until: float) -> bytes:
    name = made["metadata"]["name"]

    async def look() -> Object:
        return await client.get(CERTIFICATE_SIGNING_REQUESTS, name)

    while True:
        present = await pace.patiently(f"read {_called(name)}", look, until=until)
        if reason := refusal(present, asked_as=uid(made)):
            raise NotSigned(f"{_called(name)} will not be signed: {reason}")
        if content := signed(present):
            return content
        if pace.now() + _LOOK_SECONDS > until:
            remedy = "approve the next one, or enable automatic approval in the garden"
            raise NotSigned(f"{_called(name)} was not approved and signed in time; {remedy}")
        await pace.sleep(_LOOK_SECONDS)


def _called(name: str) -> str:
    return f"the CertificateSigningRequest {name}"
