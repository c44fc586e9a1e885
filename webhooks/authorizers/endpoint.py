"""Endpoint that answers the SubjectAccessReviews of one authorizer; the API server gets an answer after any error."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gardener.rights.requests import Attributes
from webhooks.authorizers.decisions import Decision
from webhooks.authorizers.review import Unreadable, decode, encode, encode_error
from webhooks.review import Endpoint

_DEADLINE_SECONDS = 10.0


def endpoint(name: str, decide: Callable[[Attributes], Awaitable[Decision]]) -> Endpoint:
    """Return the endpoint of an authorizer; `name` is that of the webhook, for logs."""
    log = structlog.get_logger(f"webhook.{name}")

    async def answer(body: bytes, content_type: str) -> bytes:
        try:
            review = decode(body, content_type)
        except Unreadable as error:
            return encode_error(error.api_version, error.code, str(error))
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                decision = await decide(review.attributes)
        except TimeoutError:
            return encode_error(review.api_version, 500, f"no decision within {_DEADLINE_SECONDS:g}s")
        except Exception as error:  # noqa: BLE001 - the API server gets an answer after any error
            log.error("Cannot decide", error=error, user=review.attributes.user)
            return encode_error(review.api_version, 500, str(error) or type(error).__name__)
        return encode(review.api_version, decision)

    return answer
