"""token-invalidator: static tokens of ServiceAccounts become useless as long as their Secret says so.

The controller of the same name labels the Secrets; each of its patches, and whatever others write, passes here.
"""

from config.schema_webhooks import Webhook
from kube.objects import Object, labels
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, Metadata, Shape, Strings

NAME = "token-invalidator"
PATH = "/webhooks/invalidate-service-account-token-secret"

CONSIDER = "token-invalidator.resources.gardener.cloud/consider"
INVALID_TOKEN = "AAAA"
"""Three zero bytes, in base64."""


class _Secret(Fields):
    metadata: Metadata | None = None
    data: Strings | None = None


_SHAPE = Shape("v1", "Secret", _Secret)


def invalidate(secret: Object) -> None:
    """Takes the token out of use, or takes an invalid one away, so that Kubernetes writes a new one.

    Whatever value the label has, it counts.
    """
    data = secret.get("data")
    if data is None:
        return
    if CONSIDER in labels(secret):
        data["token"] = INVALID_TOKEN
    elif data.get("token") == INVALID_TOKEN:
        del data["token"]


def mutation(_settings: Webhook, _facts: Facts) -> Mutation:
    async def mutate(_: Request, secret: Object) -> None:
        _SHAPE.demand(secret)
        invalidate(secret)

    return mutate


def handler(settings: Webhook, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
