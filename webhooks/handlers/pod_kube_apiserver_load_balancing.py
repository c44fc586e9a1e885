"""pod-kube-apiserver-load-balancing: route pods to the API server through Istio's internal gateway.

It changes pods that use a generic kubeconfig, in namespaces whose ConfigMap names the hosts of the API server. They get
these hosts as aliases of the gateway's addresses, and a label for a NetworkPolicy that permits the traffic.
"""

import hashlib
from collections.abc import Mapping, Sequence

from config.resource_manager.webhooks import Webhook
from gardener.keys import NETWORKING_PREFIX, ROLE, ROLE_SHOOT
from kube.objects import Key, Object, spec, string_map, texts
from kube.pod_references import slots
from kube.resources import CONFIG_MAPS, SECRETS, SERVICES
from kube.runtime.cache import View
from webhooks.admission import Denied, Mutation, Refusal, Request
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.rules.registration import COMPONENT, PODS, having, where
from webhooks.rules.shapes import METADATA, child, items, pod
from webhooks.state import SharedListers, not_found

CONFIG_MAP = "istio-internal-load-balancing"
GATEWAY = "istio-ingressgateway-internal"

MOST_HOSTS = 100

_GENERIC_KUBECONFIG = "generic-token-kubeconfig"
_LONGEST_LABEL_NAME = 63
_PORT = 9443

_VOLUME = {"secret": {"secretName": str}, "projected": {"sources": [{"secret": {"name": str}}]}}
_HOST_ALIAS = {"ip": str, "hostnames": [str]}
_SHAPE = pod({"metadata": METADATA, "spec": {"volumes": [_VOLUME], "hostAliases": [_HOST_ALIAS]}})


def uses_generic_kubeconfig(obj: Object) -> bool:
    named = slots(spec(obj).get("volumes"))
    return any(each.kind == SECRETS.kind and each.name.startswith(_GENERIC_KUBECONFIG) for each in named)


def add_aliases(obj: Object, ips: Sequence[str], hosts: Sequence[str]) -> None:
    known = (obj.get("spec") or {}).get("hostAliases") or ()
    wanted = [{"ip": ip, "hostnames": list(hosts)} for ip in ips]
    if missing := [alias for alias in wanted if alias not in known]:
        items(child(obj, "spec"), "hostAliases").extend(missing)


def allowance(istio_namespace: str) -> str:
    """Return the label that permits traffic to the gateway; a name that is too long for a label is cut."""
    name = f"to-{istio_namespace}-{GATEWAY}-tcp-{_PORT}"
    if len(name) > _LONGEST_LABEL_NAME:
        name = f"{name[:57]}-{hashlib.sha256(name.encode()).hexdigest()[:5]}"
    return NETWORKING_PREFIX + name


def _data(config_map: Object) -> Mapping[str, str]:
    return string_map(config_map.get("data"))


def _cluster_ips(service: Object) -> tuple[str, ...]:
    return tuple(texts(spec(service).get("clusterIPs")))


CONFIG_MAPS_VIEW = View(CONFIG_MAPS, _data, field_selector=f"metadata.name={CONFIG_MAP}")
SERVICES_VIEW = View(SERVICES, _cluster_ips, field_selector=f"metadata.name={GATEWAY}")


class Gateways:
    """Istio's internal gateways, and the namespaces that use them."""

    def __init__(self, state: SharedListers) -> None:
        self._state = state
        self._config_maps = state.lister(CONFIG_MAPS_VIEW)
        self._services = state.lister(SERVICES_VIEW)

    def configured(self, namespace: str) -> Mapping[str, str] | None:
        """Return the data of a namespace's ConfigMap for load balancing; None if there is none.

        Raises:
            NotCovered: the namespace is not watched.
        """
        self._state.demand_covered(CONFIG_MAPS, namespace)
        return self._config_maps.store.get(Key(namespace, CONFIG_MAP))

    def ips(self, namespace: str) -> tuple[str, ...]:
        """Return the addresses of the gateway in a namespace.

        Raises:
            NotFound: there is no such Service.
            NotCovered: the namespace is not watched.
        """
        self._state.demand_covered(SERVICES, namespace)
        found = self._services.store.get(Key(namespace, GATEWAY))
        if found is None:
            raise not_found(SERVICES, GATEWAY)
        return found


def mutation(_settings: Webhook, state: SharedListers) -> Mutation:
    gateways = Gateways(state)

    async def mutate(request: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        if not uses_generic_kubeconfig(obj):
            return
        data = gateways.configured(request.namespace)
        if data is None:
            return
        hosts = data.get("hosts")
        if not hosts:
            name = f"{request.namespace}/{CONFIG_MAP}"
            raise Refusal(Denied(f'"hosts" key in configmap "{name}" provides an empty value'))
        if hosts.count(",") >= MOST_HOSTS:
            name = f"{request.namespace}/{CONFIG_MAP}"
            raise Refusal(Denied(f'"hosts" key in configmap "{name}" has more than {MOST_HOSTS} hosts'))
        istio_namespace = data.get("istio-namespace") or ""
        add_aliases(obj, gateways.ips(istio_namespace), hosts.split(","))
        child(child(obj, "metadata"), "labels")[allowance(istio_namespace)] = "allowed"

    return mutate


WEBHOOK = MutatingWebhook(
    name="pod-kube-apiserver-load-balancing",
    path="/webhooks/pod-kube-apiserver-load-balancing",
    settings=Webhook,
    mutation=mutation,
    entries=(
        # Pods of shoots may be named as our own: those of other instances, which need it, and never ours.
        Entry(rules=(PODS,), namespaces=having(ROLE, ROLE_SHOOT)),
        Entry(
            name="pod-virtual-garden-kube-apiserver-load-balancing",
            rules=(PODS,),
            namespaces=having("kubernetes.io/metadata.name", "garden"),
            objects=lambda instance: where("app", "NotIn", COMPONENT) & instance.not_ours(),
        ),
    ),
)
