"""endpoint-slice-hints: keep traffic in the zone of its origin, by hinting each endpoint to its own zone."""

from config.resource_manager.webhooks import Webhook
from gardener import keys
from kube.objects import Object
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.generic import in_place
from webhooks.rules.registration import WRITE, Instance, Rule, having
from webhooks.rules.shapes import Shape

_SHAPE = Shape("discovery.k8s.io/v1", "EndpointSlice", {"endpoints": [{"zone": str}]})


def set_hints(obj: Object) -> None:
    """Set hints whether or not an endpoint is ready; one without a zone keeps its hints."""
    for endpoint in obj.get("endpoints") or ():
        if endpoint.get("zone"):
            endpoint["hints"] = {"forZones": [{"name": endpoint["zone"]}]}


mutation = in_place(_SHAPE, set_hints)


WEBHOOK = MutatingWebhook(
    name="endpoint-slice-hints",
    path="/webhooks/endpoint-slice-hints",
    settings=Webhook,
    mutation=mutation,
    entries=(
        Entry(
            rules=(Rule(WRITE, "discovery.k8s.io", ("v1",), ("endpointslices",)),),
            namespaces=Instance.namespaces,
            objects=having(f"endpoint-slice-hints.{keys.GROUP}/consider", "true"),
            match_policy="Equivalent",
        ),
    ),
)
