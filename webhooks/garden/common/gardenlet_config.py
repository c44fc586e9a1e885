"""Configuration of a gardenlet in a field of another kind.

The API server stores it unchanged. The parts that describe the Seed are compared with a schema, completed, and checked
by the rules of Seeds here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from gardener.api import structural
from gardener.api.garden.managed_seed import CONFIG_API_VERSION, CONFIG_KIND, CONFIG_SCHEMA
from gardener.api.garden.seed import SPEC as SEED_SCHEMA
from gardener.garden.managed_seeds import DEFAULT_CAPACITY
from kube.names import dns_subdomain_problems
from kube.objects import Object, mapping, string_map, text
from kube.paths import mapping_at
from kube.quantities import parse_quantity
from kube.validation import (
    FieldError,
    annotation_errors,
    forbidden,
    invalid,
    invalid_for,
    label_errors,
    required,
)
from webhooks.garden.common import seed_spec
from webhooks.rules.shapes import child

SEED_SPEC = ("seedConfig", "spec")
_CONNECTION = "gardenClientConnection"
_SHOOTS = "shoots"
_NO_KUBECONFIG = "kubeconfig is required if bootstrap is not specified and merging with parent is disabled"


def readable(config: Object) -> Object | None:
    """Return a copy of the configuration without nulls; None if it does not fit the schema, which `errors` reports."""
    copy = mapping(structural.with_defaults(CONFIG_SCHEMA, config))
    return None if structural.errors(CONFIG_SCHEMA, copy) else copy


def completed(config: Object) -> Object:
    """Return the configuration with defaults, for `mutations`."""
    found = readable({"apiVersion": CONFIG_API_VERSION, "kind": CONFIG_KIND, **config})
    if found is None:
        return config
    child(child(found, "resources"), "capacity").setdefault(_SHOOTS, DEFAULT_CAPACITY)
    child(found, "seedConfig")
    seed_spec.set_ingress_kind(mapping_at(found, *SEED_SPEC))
    return found


def set_pull_policy(deployment: Object) -> None:
    image = child(deployment, "image")
    image.setdefault("pullPolicy", "Always" if image.get("tag") == "latest" else "IfNotPresent")


# --- rules


def errors(config: Object, path: str) -> Iterator[FieldError]:
    """Return all errors except missing fields of the Seed's spec."""
    found = mapping(structural.with_defaults(CONFIG_SCHEMA, config))
    if wrong := structural.errors(CONFIG_SCHEMA, found):
        yield from _below(path, wrong)
        return
    yield from _resource_errors(mapping_at(found, "resources"), f"{path}.resources")
    yield from seed_spec.template_errors(mapping_at(found, "seedConfig"), f"{path}.seedConfig")


def _resource_errors(resources: Object, path: str) -> Iterator[FieldError]:
    """Reserved resources must be part of the capacity, in whole numbers."""
    capacity = {_SHOOTS: DEFAULT_CAPACITY, **mapping(resources.get("capacity"))}
    for name, reserved in mapping(resources.get("reserved")).items():
        where = f"{path}.reserved.{name}"
        if name not in capacity:
            yield invalid(where, reserved, "reserved without capacity")
        elif _whole(reserved) > _whole(capacity[name]):
            yield invalid(where, reserved, "reserved must be lower or equal to capacity")


def _whole(quantity: str | int) -> Decimal:
    return parse_quantity(quantity).to_integral_value(ROUND_CEILING)


def deployment_errors(deployment: Object, path: str) -> Iterator[FieldError]:
    """Return errors in the Deployment of a gardenlet."""
    if account := text(deployment.get("serviceAccountName")):
        yield from invalid_for(f"{path}.serviceAccountName", account, dns_subdomain_problems(account))
    yield from label_errors(f"{path}.podLabels", string_map(deployment.get("podLabels")))
    yield from annotation_errors(f"{path}.podAnnotations", string_map(deployment.get("podAnnotations")))


def missing(config: Object, path: str) -> Iterator[FieldError]:
    """Return missing required fields of a Seed without other sources; none if `errors` has findings."""
    where = f"{path}.seedConfig.spec"
    found = readable(config)
    if found is not None:
        spec = mapping(structural.with_defaults(SEED_SCHEMA, mapping_at(found, *SEED_SPEC)))
        yield from _below(where, structural.errors(SEED_SCHEMA, spec))
        yield from seed_spec.completeness_errors(spec, where)


def _below(path: str, found: Iterable[FieldError]) -> Iterator[FieldError]:
    """Prefix the paths, and drop the note that rules of CEL were not checked."""
    return (replace(error, path=f"{path}.{error.path}") for error in found if error.path != "<nil>")


def connection_errors(config: Object, path: str, *, bootstrap: str, merged: bool) -> Iterator[FieldError]:
    """Check the connection; `merged`: with the configuration of the parent gardenlet, which may have a kubeconfig."""
    connection = mapping(config.get(_CONNECTION))
    where = f"{path}.{_CONNECTION}"
    kubeconfig = text(connection.get("kubeconfig"))
    if bootstrap != "None":
        if kubeconfig:
            yield forbidden(f"{where}.kubeconfig", "kubeconfig is forbidden if bootstrap is specified")
        return
    if not kubeconfig and not merged:
        yield required(f"{where}.kubeconfig", _NO_KUBECONFIG)
    for field, what in (("bootstrapKubeconfig", "bootstrap kubeconfig"), ("kubeconfigSecret", "kubeconfig secret")):
        if connection.get(field) is not None:
            yield forbidden(f"{where}.{field}", f"{what} is forbidden if bootstrap is not specified")
