"""node-agent-authorizer: what a node agent may do, asked by an API server that is configured to.

An authorization webhook has no webhook configuration and speaks SubjectAccessReviews instead of AdmissionReviews:
`review` reads and writes them, `rules` decide, `lookups` ask the clusters what the rules need to know.
"""

import asyncio

import structlog

from config.resource_manager.webhooks import NodeAgentAuthorizer
from process.clusters import Cluster
from webhooks.descriptor import AuthorizationWebhook
from webhooks.handlers.node_agent_authorizer.lookups import Lookups
from webhooks.handlers.node_agent_authorizer.review import Unreadable, decode, encode, encode_error
from webhooks.handlers.node_agent_authorizer.rules import authorize
from webhooks.review import Endpoint

NAME = "node-agent-authorizer"

_DEADLINE_SECONDS = 10.0

log = structlog.get_logger(f"webhook.{NAME}")


def authorizer(settings: NodeAgentAuthorizer, source: Cluster, target: Cluster) -> Endpoint:
    """What answers; it never raises."""
    machines = source.client if settings.machine_namespace else None
    lookups = Lookups(machines=machines, machine_namespace=settings.machine_namespace or "", target=target.client)

    async def answer(body: bytes, content_type: str) -> bytes:
        try:
            review = decode(body, content_type)
        except Unreadable as error:
            return encode_error(error.api_version, error.code, str(error))
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                decision = await authorize(review.attributes, lookups, with_selectors=settings.authorize_with_selectors)
        except TimeoutError:
            return encode_error(review.api_version, 500, f"no decision within {_DEADLINE_SECONDS:g}s")
        except Exception as error:  # noqa: BLE001 - whatever fails, the API server gets an answer
            log.error("Cannot decide", error=error, user=review.attributes.user)
            return encode_error(review.api_version, 500, str(error) or type(error).__name__)
        return encode(review.api_version, decision)

    return answer


WEBHOOK = AuthorizationWebhook(
    name=NAME,
    path="/webhooks/auth/nodeagent",
    settings=NodeAgentAuthorizer,
    authorizer=lambda settings, state: authorizer(settings, state.source, state.target),
)
