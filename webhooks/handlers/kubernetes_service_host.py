"""kubernetes-service-host: give containers the external name of the API server.

Kubelets set `KUBERNETES_SERVICE_HOST` to the IP address of the Service, unless a container has it already.
"""

from itertools import chain

from config.resource_manager.webhooks import KubernetesServiceHost
from gardener.keys import APISERVER_PROXY_INJECT
from kube.objects import Object
from webhooks.admission import Mutation, Request
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.rules.registration import PODS, where
from webhooks.rules.shapes import items, pod
from webhooks.state import SharedListers

VARIABLE = "KUBERNETES_SERVICE_HOST"

_INJECTED = where(APISERVER_PROXY_INJECT, "NotIn", "disable")

_CONTAINER = {"env": [{"name": str}]}
_SHAPE = pod({"spec": {"initContainers": [_CONTAINER], "containers": [_CONTAINER]}})


def set_host(obj: Object, host: str) -> None:
    """Set the variable in all but ephemeral containers; an existing one stays, since its author chose the value."""
    spec = obj.get("spec") or {}
    for container in chain(spec.get("initContainers") or (), spec.get("containers") or ()):
        for variable in container.get("env") or ():
            if variable.get("name") == VARIABLE:
                break
        else:
            items(container, "env").append({"name": VARIABLE, "value": host})


def mutation(settings: KubernetesServiceHost, _state: SharedListers) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        set_host(obj, settings.host)

    return mutate


WEBHOOK = MutatingWebhook(
    name="kubernetes-service-host",
    path="/webhooks/kubernetes-service-host",
    settings=KubernetesServiceHost,
    mutation=mutation,
    entries=(
        Entry(
            rules=(PODS,),
            namespaces=_INJECTED,
            objects=lambda instance: _INJECTED & instance.not_ours(),
            failure_policy="Ignore",
            timeout_seconds=2,
            reinvocation_policy="Never",
        ),
    ),
)
