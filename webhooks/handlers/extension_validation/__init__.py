"""extension-validation: refuses extension resources, and Etcds, that break the rules of their kind.

One webhook a kind, since the API server is told the kinds by webhook. `typed` declares what fields there are, each
module of a kind its own; `rules` puts a webhook together from them.
"""

from collections.abc import Mapping

from config.schema_webhooks import Webhook
from webhooks.admission import Handler
from webhooks.handlers.extension_validation.kinds import KINDS

NAME = "extension-validation"


def handlers(_settings: Webhook) -> Mapping[str, Handler]:
    """By path."""
    return {kind.path: kind.handler() for kind in KINDS}
