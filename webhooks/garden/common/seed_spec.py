"""Rules for the spec of a Seed in all places: in a Seed, a template, or the configuration of a gardenlet.

A Seed that is created later gets missing fields from elsewhere, so all functions here accept missing ones.
"""

from collections.abc import Iterator, Mapping

from gardener.garden.networks import cidr_errors, family_errors, overlap_errors, vpn_errors
from kube.names import dns_subdomain_problems
from kube.objects import Object, mapping, mappings, string_map, text, texts
from kube.paths import at, mapping_at, mappings_at
from kube.validation import (
    FieldError,
    annotation_errors,
    duplicates,
    forbidden,
    invalid,
    invalid_for,
    not_found,
    required,
    toleration_errors,
)
from webhooks.garden.common import tolerations
from webhooks.garden.common.metadata import metadata_errors
from webhooks.rules.shapes import child

_IMMUTABLE = (
    *(("networks", name) for name in ("pods", "services", "nodes", "ipFamilies")),
    ("ingress", "domain"),
    ("backup", "provider"),
    ("backup", "region"),
)


def set_ingress_kind(spec: Object) -> None:
    """Set the only kind of ingress controller."""
    ingress = spec.get("ingress")
    if isinstance(ingress, dict):
        child(ingress, "controller").setdefault("kind", "nginx")


def set_backup_secret(spec: Object, name: str, namespace: str) -> None:
    """Set the default backup Secret; name and namespace are those of the object that describes the Seed."""
    backup = spec.get("backup")
    if isinstance(backup, dict) and not backup.get("secretRef") and name:
        backup["secretRef"] = {"name": f"backup-{name}", "namespace": namespace}


# --- rules


def template_errors(template: Object, path: str) -> Iterator[FieldError]:
    """Return errors in a Seed's template, except missing fields of its spec. Its parent object names the Seed."""
    where, metadata = f"{path}.metadata", mapping(template.get("metadata"))
    if metadata.get("name"):
        yield forbidden(f"{where}.name", "seed name is forbidden")
    yield from metadata_errors(metadata, where)
    yield from spec_errors(mapping(template.get("spec")), f"{path}.spec")


def spec_errors(spec: Object, path: str) -> Iterator[FieldError]:
    yield from _network_errors(mapping(spec.get("networks")), f"{path}.networks")
    yield from _backup_errors(spec, path)
    if domain := text(at(spec, "ingress", "domain")):
        yield from invalid_for(f"{path}.ingress.domain", domain, dns_subdomain_problems(domain))
    yield from tolerations.list_errors(f"{path}.taints", mappings(spec.get("taints")), are_taints=True)
    yield from _settings_errors(spec, f"{path}.settings")
    purposes = (text(each.get("purpose")) for each in mappings_at(spec, "volume", "providers"))
    yield from duplicates(f"{path}.volume.providers", purposes, field="purpose")


def completeness_errors(spec: Object, path: str) -> Iterator[FieldError]:
    """Return missing fields that an ingress needs, if there is one."""
    ingress = spec.get("ingress")
    if ingress is None:
        return
    if not mapping(ingress).get("domain"):
        yield required(f"{path}.ingress.domain", "cannot be empty")
    if at(spec, "dns", "provider") is None:
        yield required(f"{path}.dns.provider", "ingress controller requires dns.provider to be set")


def change_errors(new: Object, old: Object, path: str) -> Iterator[FieldError]:
    """Return changes of immutable fields, for specs without schema."""
    for field in _IMMUTABLE:
        before, value = at(old, *field), at(new, *field)
        if before is not None and value != before:
            yield invalid(".".join((path, *field)), value, "field is immutable")


def _network_errors(networks: Object, path: str) -> Iterator[FieldError]:
    families = texts(networks.get("ipFamilies"))
    yield from duplicates(f"{path}.ipFamilies", families)
    given = {f"{path}.{name}": cidr for name, cidr in _ranges(networks).items() if cidr}
    for where, cidr in given.items():
        yield from cidr_errors(where, cidr)
    for index, cidr in enumerate(texts(networks.get("blockCIDRs"))):
        yield from cidr_errors(f"{path}.blockCIDRs[{index}]", cidr)
    yield from family_errors(given, families)
    yield from overlap_errors(given)
    yield from vpn_errors(given)


def _ranges(networks: Object) -> Mapping[str, str]:
    own = {name: text(networks.get(name)) for name in ("pods", "services", "nodes")}
    defaults = mapping(networks.get("shootDefaults"))
    return own | {f"shootDefaults.{name}": text(defaults.get(name)) for name in ("pods", "services")}


def _backup_errors(spec: Object, path: str) -> Iterator[FieldError]:
    provider, backup = text(at(spec, "provider", "type")), mapping(spec.get("backup"))
    other = text(backup.get("provider"))
    if provider and other and other != provider and not backup.get("region"):
        yield required(f"{path}.backup.region", "a backup provider that is not the provider of the seed needs a region")


def _settings_errors(spec: Object, path: str) -> Iterator[FieldError]:
    zones = texts(at(spec, "provider", "zones"))
    yield from _load_balancer_errors(mapping_at(spec, "settings", "loadBalancerServices"), zones, path)
    if at(spec, "settings", "topologyAwareRouting", "enabled") and len(zones) < 2:
        yield forbidden(
            f"{path}.topologyAwareRouting.enabled",
            "topology-aware routing can only be enabled on seeds with at least two zones in spec.provider.zones",
        )
    reservation = mapping_at(spec, "settings", "excessCapacityReservation")
    for index, config in enumerate(mappings(reservation.get("configs"))):
        yield from _reservation_errors(config, f"{path}.excessCapacityReservation.configs[{index}]")


def _load_balancer_errors(services: Object, zones: list[str], path: str) -> Iterator[FieldError]:
    where = f"{path}.loadBalancerServices.zones"
    settings = mappings(services.get("zones"))
    yield from annotation_errors(f"{path}.loadBalancerServices.annotations", string_map(services.get("annotations")))
    for index, zone in enumerate(settings):
        yield from annotation_errors(f"{where}[{index}].annotations", string_map(zone.get("annotations")))
    names = [text(zone.get("name")) for zone in settings]
    if names and len(zones) < 2:
        yield forbidden(where, "settings of zones are only allowed with at least two zones in spec.provider.zones")
    for index, name in enumerate(names):
        if name not in zones:
            yield not_found(f"{where}[{index}].name", name)
    yield from duplicates(where, names, field="name")


def _reservation_errors(config: Object, path: str) -> Iterator[FieldError]:
    if not config.get("resources"):
        yield required(f"{path}.resources", "cannot be empty")
    for index, toleration in enumerate(mappings(config.get("tolerations"))):
        yield from toleration_errors(f"{path}.tolerations[{index}]", toleration)
