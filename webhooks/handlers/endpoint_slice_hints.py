"""endpoint-slice-hints: traffic stays in the zone of its origin, since each endpoint is hinted to its own zone."""

from config.schema_webhooks import Webhook
from kube.objects import Object
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, Shape

NAME = "endpoint-slice-hints"
PATH = "/webhooks/endpoint-slice-hints"


class _Endpoint(Fields):
    zone: str | None = None


class _EndpointSlice(Fields):
    endpoints: list[_Endpoint] | None = None


_SHAPE = Shape("discovery.k8s.io/v1", "EndpointSlice", _EndpointSlice)


def set_hints(obj: Object) -> None:
    """Whether an endpoint is ready does not matter; one without a zone keeps the hints it has."""
    for endpoint in obj.get("endpoints") or ():
        if endpoint.get("zone"):
            endpoint["hints"] = {"forZones": [{"name": endpoint["zone"]}]}


def mutation(_settings: Webhook, _facts: Facts) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        set_hints(obj)

    return mutate


def handler(settings: Webhook, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
