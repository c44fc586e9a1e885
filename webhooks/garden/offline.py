"""Check an object as the API server of a garden would, but offline.

The order is that of the API server: unknown fields, defaults of the schema, defaults of the webhooks, the schema with
its rules of CEL, the rules of the webhooks. All rules of the descriptor run, in a garden without objects to read: a
rule that needs another object ends there, and is reported as left out, by the first sentence of its docstring.
Mutations that need a cluster are left out.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from gardener.api.definition import Definition
from gardener.api.garden.definitions import DEFINITIONS, definition
from gardener.api.schema import Schema
from gardener.api.structural import errors, pruned, unknown_fields, with_defaults
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, group_of, metadata, text
from kube.validation import FieldError, invalid_for, required
from webhooks.admission import User
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import NeedsOtherObjects, Right, Write
from webhooks.garden.conversion import convert
from webhooks.garden.registry import KINDS
from webhooks.garden.shapes import shape_of
from webhooks.generic import copied
from webhooks.rules.shapes import WrongShape

GROUPS = frozenset(each.resource.group for each in DEFINITIONS)
_COUNTED = "the number of other objects"
_KINDS = {kind.resource: kind for kind in KINDS}

T = TypeVar("T")


class NotServed(ValueError):
    """The API server of a garden does not serve the object; the text has its kind and version."""


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A rule that could not run to its end.

    Attributes:
        rule: its requirement.
        needs: kind of the missing objects; rights and numbers need an API server.
    """

    rule: str
    needs: str

    def __str__(self) -> str:
        return f"{self.rule} (needs {self.needs})"


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def report(obj: Object) -> Report:
    """Report on the creation of this object.

    Raises:
        NotServed: the kind, or its version, does not belong to the garden API.
    """
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
    return replace(checked, findings=(*unknown, *named, *checked.findings))


def _checked(found: Definition, obj: Object) -> Report:
    """Report on an object of the stored version, with the defaults of its schema."""
    schema, kind = found.schema, _KINDS.get(found.resource)
    try:
        shape_of(found).check(obj)
    except WrongShape:
        # Rules cannot process objects that the schema refuses.
        return Report(tuple(errors(schema, obj)))
    if kind is None:
        return Report(tuple(errors(schema, obj)))
    return _check_by_rules(kind, schema, obj)


def _check_by_rules(kind: Kind, schema: Schema, obj: Object) -> Report:
    write, left_out = _creation(obj), list[LeftOut]()
    warnings = _yielded(kind.deprecations, write, left_out)
    for default in kind.defaults:
        default(write)
    write = _creation(with_defaults(schema, write.new))
    wrong: list[FieldError] = errors(schema, write.new)
    known = {error.path for error in wrong}
    found = _yielded(kind.rules_of_creation(write), write, left_out)
    warnings += _yielded(kind.warnings, write, left_out)
    left_out += [_not_asked(right) for right in _yielded(kind.rights, write, left_out)]
    left_out += [LeftOut(limit.denial, _COUNTED) for limit in _yielded(kind.limits, write, left_out)]
    return Report(
        (*wrong, *(finding for finding in found if finding.path not in known)),
        tuple(warnings),
        tuple(dict.fromkeys(left_out)),
    )


def _yielded(rules: Iterable[Callable[[Write], Iterable[T]]], write: Write, left_out: list[LeftOut]) -> list[T]:
    """Return the results of each rule up to its first access to another object, on which earlier results don't
    depend.
    """
    found: list[T] = []
    for rule in rules:
        try:
            found.extend(rule(write))
        except NeedsOtherObjects as needs:
            left_out.append(LeftOut(title(rule), needs.resource.kind))
    return found


def title(rule: Callable[..., object]) -> str:
    """Return the first sentence of the rule's docstring."""
    first = " ".join((rule.__doc__ or "").split()).partition(". ")[0].removesuffix(".").partition(":")[0]
    return first[:1].lower() + first[1:]


def _not_asked(right: Right) -> LeftOut:
    resource = "/".join(filter(None, (right.resource.plural, right.subresource)))
    name = f' "{Key(right.namespace, right.name)}"' if right.name else ""
    return LeftOut(f"the user may {right.verb} {resource}{name}", "an API server")


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
