"""What the API server of a garden would say about an object, without asking one.

In its order: fields that it does not know, defaults of the schema, defaults of the webhooks, the schema with its rules
of CEL, the rules of the webhooks. Left out is what needs a cluster: mutations and references, which look at other
objects, and rights.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gardener.api.definition import Definition
from gardener.api.garden.definitions import DEFINITIONS, definition
from gardener.api.schema import Schema
from gardener.api.structural import errors, pruned, unknown_fields, with_defaults
from kube.names import dns_subdomain_problems
from kube.objects import Object, group_of, metadata, text
from kube.validation import FieldError, invalid_for, required
from webhooks.admission import User
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.conversion import convert
from webhooks.garden.registry import KINDS
from webhooks.garden.shapes import shape_of
from webhooks.generic import copied
from webhooks.rules.shapes import WrongShape

GROUPS = frozenset(each.resource.group for each in DEFINITIONS)
_KINDS = {kind.resource: kind for kind in KINDS}


class NotServed(ValueError):
    """The text says what the API server of a garden does not know about the object."""


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()


def report(obj: Object) -> Report:
    """About the creation of this object. Raises NotServed: the kind, or its version, is none of the garden API."""
    api_version, name = text(obj.get("apiVersion")), text(obj.get("kind"))
    found = definition(group=group_of(api_version), kind=name)
    schema = None if found is None else found.schema_of(api_version.rpartition("/")[2])
    if found is None or schema is None:
        raise NotServed(f'no matches for kind "{name}" in version "{api_version}"')
    unknown = [Denial(f'unknown field "{path}"', path) for path in unknown_fields(schema, obj)]
    obj = with_defaults(schema, pruned(schema, copied(obj)))
    named = list(_name_errors(obj))
    if api_version != found.resource.api_version:
        if wrong := errors(schema, obj):
            return Report((*unknown, *named, *wrong))
        obj = with_defaults(found.schema, convert(obj, found.resource.api_version))
    checked = _checked(found, obj)
    return Report((*unknown, *named, *checked.findings), checked.warnings)


def _checked(found: Definition, obj: Object) -> Report:
    """Of an object of the stored version, with the defaults of its schema."""
    schema, kind = found.schema, _KINDS.get(found.resource)
    try:
        shape_of(found).check(obj)
    except WrongShape:
        # Rules need no care for what the schema refuses first.
        return Report(tuple(errors(schema, obj)))
    if kind is None:
        return Report(tuple(errors(schema, obj)))
    return _check_by_rules(kind, schema, obj)


def _check_by_rules(kind: Kind, schema: Schema, obj: Object) -> Report:
    write = _creation(obj)
    warnings = list(kind.deprecations_in(write))
    for default in kind.defaults:
        default(write)
    write = _creation(with_defaults(schema, write.new))
    wrong: list[FieldError] = errors(schema, write.new)
    known = {error.path for error in wrong}
    rules = (finding for rule in kind.checks for finding in rule(write))
    return Report(
        (*wrong, *(finding for finding in rules if finding.path not in known)),
        (*warnings, *kind.warnings_about(write)),
    )


def _creation(obj: Object) -> Write:
    meta = metadata(obj)
    namespace, name = text(meta.get("namespace")), text(meta.get("name"))
    return Write(operation="CREATE", namespace=namespace, name=name, user=User(), new=obj, old={})


def _name_errors(obj: Object) -> Iterator[FieldError]:
    meta = metadata(obj)
    name = text(meta.get("name"))
    if name:
        yield from invalid_for("metadata.name", name, dns_subdomain_problems(name))
    elif not meta.get("generateName"):
        yield required("metadata.name", "name or generateName is required")
