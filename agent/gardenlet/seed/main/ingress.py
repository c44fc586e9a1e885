"""Ingress of a seed: Istio with its ingress gateways, and the DNS record for operators' endpoints.

Existing namespaces are only labelled, and stay. A garden in the same cluster provides the gateways' control plane.

An obsolete gateway stays while a Shoot uses it.
"""

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from agent.gardenlet.common.extension_objects.kinds import DNS_RECORD
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.seed.main.definitions import are_served
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.skipping import is_left_out
from components import namespaces
from components.gateways import (
    ISTIO,
    Gateway,
    for_all_zones,
    of_seed,
    service_annotations,
    traffic_policy,
)
from components.parts import GARDEN, in_seed, made
from gardener import keys
from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import ENVOY_FILTERS, SERVICE_MONITORS
from kube.apply.shared_objects import ensure
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, is_deleting, key, mapping, mappings, metadata, spec, text, texts
from kube.paths import at
from kube.resources import NAMESPACES, SECRETS, SERVICES
from kube.runtime.client import Form, Selection
from kube.runtime.controller import ReconcileError, TerminalError

if TYPE_CHECKING:
    from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
    from config.gardenlet.schema import GardenletConfiguration

NAME = ISTIO
_SYSTEM = "istio-system"
_DISCOVERY = f"{NAME}-discovery"
_NAMESPACES = f"{NAME}-namespaces"
_MANAGED = f"{keys.GARDENLET_MANAGED}=true"
_RECORD = "seed-ingress"
_ADDRESS_SECONDS = 300.0
_GONE_SECONDS = 300.0
_IP_STACK = "dns.gardener.cloud/ip-stack"


async def reconcile(operation: SeedOperation) -> None:
    """Deploy Istio, or delete it.

    Raises:
        ReconcileError: it can't be deployed or deleted.
    """
    if NAME not in operation.components:
        await destroy(operation)
        return
    from components import ingress_gateway, istiod  # large, and not used by every seed

    monitored = await are_served(operation, SERVICE_MONITORS)
    gateways = await _gateways(operation)
    await _deploy_namespaces(operation, gateways)
    if not operation.is_garden:
        values = istiod.Values(image=operation.config.images.istio_discovery, monitored=monitored)
        await operation.objects.deploy(_DISCOVERY, istiod.objects(values))
    usual, *others = (ingress_gateway.Values(**_values(operation, each), monitored=monitored) for each in gateways)
    await operation.objects.deploy(NAME, ingress_gateway.objects(usual, *others))


async def destroy(operation: SeedOperation) -> None:
    """Delete Istio; the DNS record first, since the address is released.

    Raises:
        ReconcileError: it is not gone in time.
    """
    await destroy_record(operation)
    managed = in_seed("", [])
    for component, kinds in ((NAME, managed), (_DISCOVERY, managed), (_NAMESPACES, [NAMESPACES.type_meta])):
        await operation.objects.destroy(component, kinds, seconds=_GONE_SECONDS)


async def _gateways(operation: SeedOperation) -> list[Gateway]:
    """Desired gateways, and those of former zones that Shoots still use.

    Raises:
        TerminalError: the handler of a used gateway is gone.
    """
    config, client = operation.config, operation.cluster.client
    found = {each.namespace: each for each in of_seed(config, operation.zones)}
    for each in await client.list(NAMESPACES, Selection(label_selector=_MANAGED), form=Form.METADATA):
        name, owner = key(each).name, annotations(each).get(keys.GARDENLET_COMPONENT)
        if name in {_SYSTEM, *found} or owner != operation.objects.owner(_NAMESPACES) or is_deleting(each):
            continue
        if users := await _reached_through(operation, name):
            found[name] = _former(config, each, users)
    return list(found.values())


async def _reached_through(operation: SeedOperation, namespace: str) -> list[str]:
    """Namespaces of Shoots that own objects in the namespace of a gateway."""
    selection, discovery = Selection(namespace=namespace), operation.cluster.discovery
    filters = await discovery.list_if_served(ENVOY_FILTERS, selection, form=Form.METADATA)
    owners = (owner for each in filters for owner in mappings(metadata(each).get("ownerReferences")))
    return sorted({text(each.get("name")) for each in owners if each.get("kind") == NAMESPACES.kind})


def _former(config: "GardenletConfiguration", namespace: Object, users: list[str]) -> Gateway:
    """Gateway of a former zone.

    Raises:
        TerminalError: its handler is gone.
    """
    zone = annotations(namespace).get(keys.HIGH_AVAILABILITY_ZONES, "")
    of_zone = (each.in_zone(zone) for each in for_all_zones(config))
    found = next((each for each in of_zone if each.namespace == key(namespace).name), None)
    if found is None:
        raise TerminalError(
            f"the gateway in namespace {key(namespace).name} was removed from exposureClassHandlers of the gardenlet's "
            f"configuration, but is still needed by {', '.join(users)}; add it again until these are deleted"
        )
    return found


async def _deploy_namespaces(operation: SeedOperation, gateways: list[Gateway]) -> None:
    own = []
    for each in namespaces.of_istio(system=_SYSTEM, gateways=gateways, zones=operation.zones):
        live = await operation.cluster.client.find(NAMESPACES, key(each).name)
        if live is None or keys.GARDENLET_COMPONENT in annotations(live):
            own.append(each)
        else:
            await ensure(operation.cluster.client, NAMESPACES, each)
    await operation.objects.deploy(_NAMESPACES, own)


def _values(operation: SeedOperation, gateway: Gateway) -> dict[str, Any]:
    return {
        "image": operation.config.images.istio_proxy,
        "namespace": gateway.namespace,
        "labels": gateway.labels,
        "annotations": service_annotations(gateway, operation.seed),
        "address": gateway.address,
        "traffic_policy": traffic_policy(gateway, operation.seed),
        "zones": 1 if gateway.zone else len(operation.zones),
    }


# --- address


async def until_reachable(operation: SeedOperation) -> None:
    """Wait until the gateway has an address, and its DNS record is reconciled.

    Raises:
        ReconcileError: that takes too long, or there are no credentials.
    """
    gateway = operation.config.sni.ingress
    name = Key(gateway.namespace, gateway.service_name)
    live = await operation.waiting.until_ready(
        SERVICES, name, without_address, seconds=_ADDRESS_SECONDS, report=waits_for
    )
    wanted = record(operation.seed, address=address_of(live))
    if wanted is None:
        await destroy_record(operation)
        return
    secret = await _credentials(operation)
    await operation.objects.deploy(_RECORD, [secret])
    present = await _own_record(operation)
    if present is not None and any(spec(present).get(each) != spec(wanted)[each] for each in ("name", "recordType")):
        await _delete_record(operation)  # these fields are immutable
    metadata(wanted)["annotations"][keys.GARDENLET_COMPONENT] = _RECORD
    objects = _extension_objects(operation)
    await objects.wait(await objects.deploy(DNS_RECORD, wanted))


def without_address(service: Object | None) -> str:
    """Reason why a Service has no address; empty if it has one."""
    if service is None:
        return "it does not exist yet; check whether the resource manager, which creates it, runs"
    return "" if address_of(service) else "it has no address; check whether a controller for load balancers runs"


def address_of(service: Object) -> str:
    """Address or host name of a Service; empty if none."""
    entries = mappings(at(service, "status", "loadBalancer", "ingress"))
    return next((found for each in entries if (found := text(each.get("ip")) or text(each.get("hostname")))), "")


def record(seed: Object, *, address: str) -> Object | None:
    """DNS record that leads from names below the ingress domain to the gateway; None without domain or DNS provider."""
    domain = text(at(seed, "spec", "ingress", "domain"))
    provider = text(at(seed, "spec", "dns", "provider", "type"))
    if not domain or not provider:
        return None
    families = texts(at(seed, "spec", "networks", "ipFamilies")) or ["IPv4"]
    stack = "dual-stack" if len(families) > 1 else families[0].lower()
    return made(
        DNS_RECORDS,
        _RECORD,
        namespace=GARDEN,
        annotations={_IP_STACK: stack},
        spec={
            "type": provider,
            "name": f"*.{domain}",
            "recordType": _record_type(address),
            "secretRef": {"name": _RECORD, "namespace": GARDEN},
            "values": [address],
        },
    )


def _record_type(address: str) -> str:
    try:
        return "A" if ip_address(address).version == 4 else "AAAA"
    except ValueError:
        return "CNAME"


async def _credentials(operation: SeedOperation) -> Object:
    """Copy of the DNS provider's credentials in the garden.

    Raises:
        ReconcileError: they are missing.
        KubeError: they can't be read.
    """
    reference = mapping(at(operation.seed, "spec", "dns", "provider", "secretRef"))
    name, namespace = text(reference.get("name")), text(reference.get("namespace"))
    try:
        secret = await operation.garden.client.get(SECRETS, Key(namespace, name))
    except NotFound as error:
        raise ReconcileError(
            f"the Secret of spec.dns.provider.secretRef does not exist in the garden: {error}"
        ) from error
    return made(SECRETS, _RECORD, namespace=GARDEN, type="Opaque", data=mapping(secret.get("data")))


async def _own_record(operation: SeedOperation) -> Object | None:
    """Record of this gardenlet; None if there is none, or it has another owner."""
    live = await operation.cluster.discovery.find_if_served(DNS_RECORDS, Key(GARDEN, _RECORD))
    return live if live is not None and keys.GARDENLET_COMPONENT in annotations(live) else None


async def destroy_record(operation: SeedOperation) -> None:
    if operation.objects.is_gone(_RECORD):
        return
    if await _own_record(operation) is not None:
        await _delete_record(operation)
    await operation.objects.destroy(_RECORD, [SECRETS.type_meta], seconds=_GONE_SECONDS)


async def _delete_record(operation: SeedOperation) -> None:
    objects, name = _extension_objects(operation), Key(GARDEN, _RECORD)
    await objects.delete(DNS_RECORD, name)
    await objects.wait_until_gone(DNS_RECORD, name)


def _extension_objects(operation: SeedOperation) -> "ExtensionObjects":
    from agent.gardenlet.common.extension_objects.objects import ExtensionObjects

    return ExtensionObjects(
        client=operation.cluster.client,
        waiting=operation.waiting,
        clock=operation.cluster.clock,
        report=lambda _, reason: waits_for(reason),
    )


UNIT = Unit(
    id=NAME,
    title="Istio",
    deploy=reconcile,
    after=["cluster-identity"],
    wait=Wait(
        "istio LoadBalancer is ready and managed ingress DNS record is reconciled",
        until_reachable,
        id="ingress-address",
        unless=is_left_out(NAME),
    ),
    destroy=destroy,
)
