"""pod-kube-apiserver-load-balancing: pods reach the API server by way of Istio's internal gateway.

It concerns pods that use a generic kubeconfig, in namespaces whose ConfigMap names the hosts of the API server. They
get these hosts as aliases of the gateway's addresses, and a label by which a NetworkPolicy lets them through.
"""

import hashlib
from collections.abc import Iterator, Sequence

from config.schema_webhooks import Webhook
from kube.objects import Object
from webhooks.admission import Denied, Handler, Mutation, Refusal, Request
from webhooks.facts import LOAD_BALANCING_CONFIG_MAP, LOAD_BALANCING_SERVICE, Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, Metadata, child, items, pod

NAME = "pod-kube-apiserver-load-balancing"
PATH = "/webhooks/pod-kube-apiserver-load-balancing"

_GENERIC_KUBECONFIG = "generic-token-kubeconfig"
_LABEL_PREFIX = "networking.resources.gardener.cloud/"
_LONGEST_LABEL_NAME = 63
_PORT = 9443


class _SecretVolume(Fields):
    secret_name: str | None = None


class _SecretSource(Fields):
    name: str | None = None


class _Source(Fields):
    secret: _SecretSource | None = None


class _Projected(Fields):
    sources: list[_Source] | None = None


class _Volume(Fields):
    secret: _SecretVolume | None = None
    projected: _Projected | None = None


class _HostAlias(Fields):
    ip: str | None = None
    hostnames: list[str] | None = None


class _Spec(Fields):
    volumes: list[_Volume] | None = None
    host_aliases: list[_HostAlias] | None = None


class _Pod(Fields):
    metadata: Metadata | None = None
    spec: _Spec | None = None


_SHAPE = pod(_Pod)


def uses_generic_kubeconfig(obj: Object) -> bool:
    volumes = (obj.get("spec") or {}).get("volumes") or ()
    return any(name.startswith(_GENERIC_KUBECONFIG) for volume in volumes for name in _secrets(volume))


def _secrets(volume: Object) -> Iterator[str]:
    yield (volume.get("secret") or {}).get("secretName") or ""
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield (source.get("secret") or {}).get("name") or ""


def add_aliases(obj: Object, ips: Sequence[str], hosts: Sequence[str]) -> None:
    known = (obj.get("spec") or {}).get("hostAliases") or ()
    wanted = [{"ip": ip, "hostnames": list(hosts)} for ip in ips]
    if missing := [alias for alias in wanted if alias not in known]:
        items(child(obj, "spec"), "hostAliases").extend(missing)


def allowance(istio_namespace: str) -> str:
    """The label by which traffic to the gateway is allowed; a name that is too long for one is cut."""
    name = f"to-{istio_namespace}-{LOAD_BALANCING_SERVICE}-tcp-{_PORT}"
    if len(name) > _LONGEST_LABEL_NAME:
        name = f"{name[:57]}-{hashlib.sha256(name.encode()).hexdigest()[:5]}"
    return _LABEL_PREFIX + name


def mutation(_settings: Webhook, facts: Facts) -> Mutation:
    async def mutate(request: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        if not uses_generic_kubeconfig(obj):
            return
        data = facts.load_balancing(request.namespace)
        if data is None:
            return
        hosts = data.get("hosts")
        if not hosts:
            name = f"{request.namespace}/{LOAD_BALANCING_CONFIG_MAP}"
            raise Refusal(Denied(f'"hosts" key in configmap "{name}" provides an empty value'))
        istio_namespace = data.get("istio-namespace") or ""
        add_aliases(obj, facts.gateway_ips(istio_namespace), hosts.split(","))
        child(child(obj, "metadata"), "labels")[allowance(istio_namespace)] = "allowed"

    return mutate


def handler(settings: Webhook, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
