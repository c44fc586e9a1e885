"""Exposure of the API server of a Shoot: its Service, an address, and its DNS names.

The address is that of an ingress gateway of the seed, shared by all Shoots. In a seed without gateways, the Service of
each Shoot has its own load balancer.
"""

import base64
from functools import partial

from agent.gardenlet.common.extension_objects.kinds import DNS_RECORD
from agent.gardenlet.flow.graph import ONCE, USUAL, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.domains import Served
from agent.gardenlet.shoot.main.rules.load_balancers import published
from agent.gardenlet.shoot.main.skipping import asleep, no_gateways
from components import dns_records, kube_apiserver, shoot_exposure
from components.dns_records import EXTERNAL, INTERNAL
from components.results import ADDRESS, CLUSTER_IP, NAMESPACE, Address
from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import DESTINATION_RULES, GATEWAYS, MANAGED_RESOURCES, VIRTUAL_SERVICES
from kube.objects import Key, Object, key, mapping, spec, text, uid
from kube.paths import at
from kube.resources import SECRETS, SERVICES

_SERVICE = f"{kube_apiserver.NAME}-service"
_SERVICE_SECONDS, _SERVICE_GONE_SECONDS = 60.0, 300.0
_GONE_SECONDS = 120.0
_AT_GATEWAY = [each.type_meta for each in (DESTINATION_RULES, GATEWAYS, MANAGED_RESOURCES, SECRETS, VIRTUAL_SERVICES)]
_TASKS = {INTERNAL: "deployDNSRecordInternal", EXTERNAL: "deployDNSRecordExternal"}
_SECRET, _RECORD = "dns-record-secret-{}", "dns-record-{}"


async def service(operation: ShootOperation) -> str:
    """Deploy the Service of the API server, and return its address.

    Raises:
        ComponentError: the objects could not be written or removed.
    """
    wanted = kube_apiserver.service(operation.technical_id)
    if not operation.config.has_gateways:
        wanted = {**wanted, "spec": {**spec(wanted), "type": "LoadBalancer"}}
    await operation.deploy(_SERVICE, [wanted])
    live = await operation.seed.client.get(SERVICES, key(wanted))
    return text(spec(live).get("clusterIP"))


async def destroy_service(operation: ShootOperation) -> None:
    """Delete the Service of the API server, and wait.

    Raises:
        ComponentError: the objects could not be written or removed.
    """
    await operation.destroy(_SERVICE, [SERVICES.type_meta], seconds=_SERVICE_GONE_SECONDS)


async def wait_for_address(operation: ShootOperation) -> Address:
    """Wait for the address of the load balancer, and return it.

    Raises:
        NotInTimeError: the wait timed out.
    """
    gateway = operation.nearest_gateway
    if not operation.config.has_gateways:
        place = Key(operation.technical_id, kube_apiserver.NAME)
    elif gateway is not None:
        place = Key(gateway.namespace, gateway.service)
    else:
        return Address()
    live = await operation.waiting.until_ready(SERVICES, place, _no_address, seconds=_SERVICE_SECONDS, report=waits_for)
    return Address(*published(live, kube_apiserver.PORT))


def _no_address(live: Object | None) -> str:
    return "" if published(live, kube_apiserver.PORT)[0] else "its load balancer has no address yet"


async def names_at_gateway(operation: ShootOperation) -> None:
    """Route connections for the names from the gateway to the API server. Raises ComponentError, KubeError."""
    if (gateway := operation.nearest_gateway) is None:
        return
    hosts = [operation.internal.host, *([operation.external.host] if operation.external else [])]
    values = shoot_exposure.Values(
        namespace=operation.technical_id,
        namespace_uid=operation.results[NAMESPACE].uid,
        hosts=hosts,
        address=operation.results[CLUSTER_IP],
        gateway_namespace=gateway.namespace,
        gateway=gateway.labels,
    )
    await operation.deploy(shoot_exposure.MANAGED_RESOURCE, shoot_exposure.objects(values))


async def remove_names_at_gateway(operation: ShootOperation) -> None:
    """Delete the routes at the gateway, and wait.

    Raises:
        ComponentError: the objects could not be written or removed.
    """
    await operation.destroy(shoot_exposure.MANAGED_RESOURCE, _AT_GATEWAY, seconds=_GONE_SECONDS)


async def advertise(operation: ShootOperation) -> None:
    """Write the advertised addresses to the status."""
    external = operation.external.host if operation.external else ""
    addresses = dns_records.advertised(internal=operation.internal.host, external=external, issuer=issuer(operation))
    if operation.results[ADDRESS].port != kube_apiserver.PORT:
        addresses = [{**each, "url": operation.inputs().url} if each["name"] != _ISSUER else each for each in addresses]
    await operation.statuses.update(operation.shoot, lambda status: {**status, "advertisedAddresses": addresses})


_ISSUER = "service-account-issuer"


def issuer(operation: ShootOperation) -> str:
    """Issuer of ServiceAccount tokens in the Shoot."""
    settings = mapping(at(spec(operation.shoot), "kubernetes", "kubeAPIServer"))
    return kube_apiserver.issuer_of(settings, host=operation.internal.host)


# --- names


async def name(operation: ShootOperation, role: str) -> None:
    """Reconcile a DNSRecord; without address or provider, it stays unchanged. Raises ExtensionError, KubeError."""
    served = _served(operation, role)
    if served is None or not served.provider or not operation.results[ADDRESS].host:
        return
    values = _values(operation, role, served)
    await operation.deploy(_SECRET.format(role), [dns_records.secret(values)])
    record = dns_records.record(values)
    await operation.ask(DNS_RECORD, record, is_demanded=operation.is_asked(_TASKS[role]))
    await operation.until_answered(DNS_RECORD, key(record))
    await operation.task_done(_TASKS[role])


def _served(operation: ShootOperation, role: str) -> Served | None:
    return operation.internal if role == INTERNAL else operation.external


def _values(operation: ShootOperation, role: str, served: Served) -> dns_records.Values:
    return dns_records.Values(
        namespace=operation.technical_id,
        shoot=operation.name.name,
        role=role,
        host=served.host,
        addresses=[operation.results[ADDRESS].host],
        provider=served.provider,
        credentials={field: base64.b64decode(value) for field, value in served.credentials.items()},
        zone=served.zone,
        ttl=operation.config.controllers.shoot.dns_entry_ttl_seconds,
    )


async def remove_name(operation: ShootOperation, role: str) -> None:
    """Delete a DNSRecord with current credentials, and wait. Raises ExtensionError, KubeError."""
    place = Key(operation.technical_id, dns_records.name(operation.name.name, role))
    live = await operation.seed.client.find(DNS_RECORDS, place)
    if live is None:
        return
    served = _served(operation, role)
    if served is not None and served.provider and operation.namespace_lives:
        await operation.deploy(_SECRET.format(role), [dns_records.secret(_values(operation, role, served))])
    await operation.extensions.delete(DNS_RECORD, place, live=live)
    await operation.extensions.wait_until_gone(DNS_RECORD, place, expected_uid=uid(live))


# --- units

SERVICE = Unit(
    id="service",
    title="Kubernetes API server service in the Seed cluster",
    deploy=service,
    after=["namespace", "identity", "infrastructure-ready"],
    provides=CLUSTER_IP,
    wait=Wait(
        "Kubernetes API server service in the Seed cluster has reported readiness",
        wait_for_address,
        id="address",
        unless=asleep,
        retry=USUAL,
        provides=ADDRESS,
        reads=[NAMESPACE],
    ),
    destroy=destroy_service,
    destroyed="Kubernetes API server service",
)
AT_GATEWAY = Unit(
    id="names-at-gateway",
    title="Kubernetes API server service SNI settings in the Seed cluster",
    deploy=names_at_gateway,
    after=["service"],
    skips=no_gateways,
    unless=asleep,
    reads=[NAMESPACE, CLUSTER_IP],
    destroy=remove_names_at_gateway,
    destroyed="Kubernetes API server service SNI",
)
ADVERTISED = Task(
    "advertised",
    "Ensuring advertised addresses for the Shoot",
    advertise,
    after=["address"],
    unless=asleep,
    retry=ONCE,
    reads=[ADDRESS],
)


def _record(role: str) -> Unit[ShootOperation]:
    return Unit(
        id=f"{role}-name",
        title=f"{role} domain DNS record",
        deploy=partial(name, role=role),
        after=["referenced", "address"],
        unless=asleep,
        retry=ONCE,
        reads=[ADDRESS],
        destroy=partial(remove_name, role=role),
        destroy_reads=[ADDRESS],
    )


INTERNAL_NAME, EXTERNAL_NAME = _record(INTERNAL), _record(EXTERNAL)
