"""token-invalidator: invalidate static tokens of ServiceAccounts as long as their Secret has the label.

The controller of the same name labels the Secrets; its patches, and all other writes, pass through here.
"""

from config.resource_manager.webhooks import Webhook
from gardener import keys
from kube.objects import Object, labels
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.generic import in_place
from webhooks.rules.registration import WRITE, Instance, Rule, having
from webhooks.rules.shapes import METADATA, Shape, Strings

INVALID_TOKEN = "AAAA"
"""Three zero bytes, in base64."""

_SHAPE = Shape("v1", "Secret", {"metadata": METADATA, "data": Strings})


def invalidate(secret: Object) -> None:
    """Invalidate the token, or remove an invalid one, so that Kubernetes writes a new one.

    The value of the label is irrelevant.
    """
    data = secret.get("data")
    if data is None:
        return
    if keys.TOKEN_INVALIDATOR_CONSIDER in labels(secret):
        data["token"] = INVALID_TOKEN
    elif data.get("token") == INVALID_TOKEN:
        del data["token"]


mutation = in_place(_SHAPE, invalidate)


WEBHOOK = MutatingWebhook(
    name="token-invalidator",
    path="/webhooks/invalidate-service-account-token-secret",
    settings=Webhook,
    mutation=mutation,
    entries=(
        Entry(
            rules=(Rule(WRITE, "", ("v1",), ("secrets",)),),
            namespaces=Instance.namespaces,
            objects=having(keys.PURPOSE, keys.PURPOSE_TOKEN_INVALIDATOR),
        ),
    ),
)
