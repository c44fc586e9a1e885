"""Exposure of the API server of a Shoot: its Service, an address, and its DNS names.

The address is that of an ingress gateway of the seed, shared by all Shoots. In a seed without gateways, the Service of
each Shoot has its own load balancer.
"""

import base64

from agent.gardenlet.extension_objects.kinds import DNS_RECORD
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.domains import Served
from agent.gardenlet.shoot.main.rules.load_balancers import published
from components import dns_records, kube_apiserver, shoot_exposure
from components.dns_records import EXTERNAL, INTERNAL
from components.results import ADDRESS, CLUSTER_IP, NAMESPACE, Address
from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import DESTINATION_RULES, GATEWAYS, MANAGED_RESOURCES, VIRTUAL_SERVICES
from kube.objects import Key, Object, key, mapping, spec, text, uid
from kube.paths import at
from kube.resources import SECRETS, SERVICES

_SERVICE_SECONDS = 60.0
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
    await operation.deploy(f"{kube_apiserver.NAME}-service", [wanted])
    live = await operation.seed.client.get(SERVICES, key(wanted))
    return text(spec(live).get("clusterIP"))


async def wait_for_address(operation: ShootOperation) -> Address:
    """Wait for the address of the load balancer, and return it.

    Raises:
        NotInTimeError: the wait timed out.
    """
    gateway = operation.nearest_gateway
    if not operation.config.has_gateways:
        name = Key(operation.technical_id, kube_apiserver.NAME)
    elif gateway is not None:
        name = Key(gateway.namespace, gateway.service)
    else:
        return Address()
    live = await operation.waiting.until_ready(
        SERVICES,
        name,
        _no_address,
        seconds=_SERVICE_SECONDS,
        report=waits_for,
    )
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


async def internal_name(operation: ShootOperation) -> None:
    await _name(operation, INTERNAL, operation.internal)


async def external_name(operation: ShootOperation) -> None:
    await _name(operation, EXTERNAL, operation.external)


async def _name(operation: ShootOperation, role: str, served: Served | None) -> None:
    """Reconcile a DNSRecord; without address or provider, it stays unchanged. Raises ExtensionError, KubeError."""
    if served is None or not served.provider or not operation.results[ADDRESS].host:
        return
    values = _values(operation, role, served)
    await operation.deploy(_SECRET.format(role), [dns_records.secret(values)])
    record = dns_records.record(values)
    await operation.ask(DNS_RECORD, record, is_demanded=operation.is_asked(_TASKS[role]))
    await operation.until_answered(DNS_RECORD, key(record))
    await operation.task_done(_TASKS[role])


def _values(operation: ShootOperation, role: str, served: Served) -> dns_records.Values:
    return dns_records.Values(
        namespace=operation.technical_id,
        shoot=operation.name.name,
        role=role,
        host=served.host,
        addresses=[operation.results[ADDRESS].host],
        provider=served.provider,
        credentials={name: base64.b64decode(value) for name, value in served.credentials.items()},
        zone=served.zone,
        ttl=operation.config.controllers.shoot.dns_entry_ttl_seconds,
    )


async def remove_internal_name(operation: ShootOperation) -> None:
    await _remove_name(operation, INTERNAL, operation.internal)


async def remove_external_name(operation: ShootOperation) -> None:
    await _remove_name(operation, EXTERNAL, operation.external)


async def _remove_name(operation: ShootOperation, role: str, served: Served | None) -> None:
    """Delete a DNSRecord with current credentials, and wait. Raises ExtensionError, KubeError."""
    name = Key(operation.technical_id, dns_records.name(operation.name.name, role))
    live = await operation.seed.client.find(DNS_RECORDS, name)
    if live is None:
        return
    if served is not None and served.provider and operation.namespace_lives:
        await operation.deploy(_SECRET.format(role), [dns_records.secret(_values(operation, role, served))])
    await operation.extensions.delete(DNS_RECORD, name, live=live)
    await operation.extensions.wait_until_gone(DNS_RECORD, name, expected_uid=uid(live))
