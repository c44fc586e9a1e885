"""node-agent-authorizer: rights of node agents, for API servers that are configured for it.

An authorization webhook has no webhook configuration and speaks SubjectAccessReviews instead of AdmissionReviews:
`rules` decide, and `lookups` read objects of the clusters that the rules need.
"""

from config.resource_manager.webhooks import NodeAgentAuthorizer
from process.clusters import Cluster
from webhooks.authorizers.endpoint import endpoint
from webhooks.descriptor import AuthorizationWebhook
from webhooks.handlers.node_agent_authorizer.lookups import Lookups
from webhooks.handlers.node_agent_authorizer.rules import authorize
from webhooks.review import Endpoint

NAME = "node-agent-authorizer"


def authorizer(settings: NodeAgentAuthorizer, source: Cluster, target: Cluster) -> Endpoint:
    """Return the endpoint, which never raises."""
    machines = source.client if settings.machine_namespace else None
    lookups = Lookups(machines=machines, machine_namespace=settings.machine_namespace or "", target=target.client)
    with_selectors = settings.authorize_with_selectors
    return endpoint(NAME, lambda requested: authorize(requested, lookups, with_selectors=with_selectors))


WEBHOOK = AuthorizationWebhook(
    name=NAME,
    path="/webhooks/auth/nodeagent",
    settings=NodeAgentAuthorizer,
    authorizer=lambda settings, state: authorizer(settings, state.source, state.target),
)
