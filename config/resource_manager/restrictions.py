"""Limits of ManagedResources, `controllers.managedResource.restrictions`. Without settings, the rights of the agent.

Unknown fields are errors here, not warnings: a mistyped name would leave a hole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from gardener import keys
from kube.names import dns_subdomain_problems
from kube.validation import FieldError, invalid, invalid_for, required
from process.configuration.checks import each, object_name
from process.configuration.fields import Check, setting

_ANY = "*"
_PATTERN = re.compile(r"[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?")
_KIND = re.compile("[A-Z][A-Za-z0-9]*")


def _pattern_errors(path: str, value: str) -> Iterator[FieldError]:
    if not _PATTERN.fullmatch(value):
        yield invalid(path, value, "must be a name; `*` stands for any characters")


def _name_if_given(path: str, value: str) -> Iterator[FieldError]:
    if value:
        yield from object_name.errors(path, value)


_pattern = Check("name, `*` for any characters", _pattern_errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    api_groups: Annotated[tuple[str, ...], setting('API groups; `""`: the core group, `*`: all.')] = ()
    kinds: Annotated[tuple[str, ...], setting("Kinds in these groups, such as `ConfigMap`; `*`: all.")] = ()


def _kinds_errors(path: str, value: Kinds) -> Iterator[FieldError]:
    if not value.api_groups:
        yield required(f"{path}.apiGroups", 'name at least one; "" is the core group')
    if not value.kinds:
        yield required(f"{path}.kinds", "name at least one; * is all of them")
    for index, group in enumerate(value.api_groups):
        yield from invalid_for(
            f"{path}.apiGroups[{index}]", group, dns_subdomain_problems(group) if group not in {"", _ANY} else ()
        )
    for index, kind in enumerate(value.kinds):
        if kind != _ANY and not _KIND.fullmatch(kind):
            yield invalid(f"{path}.kinds[{index}]", kind, "must be a kind, such as ConfigMap, or *")


_kinds = Check("both fields given, with names or `*`", _kinds_errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindLists:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    allow: Annotated[tuple[Kinds, ...], setting("Allowed kinds; empty: all.", each(_kinds))] = ()
    deny: Annotated[tuple[Kinds, ...], setting("Forbidden kinds, even if in `allow`.", each(_kinds))] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRule:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    from_: Annotated[
        tuple[str, ...], setting("Namespaces of ManagedResources; empty: all.", each(_pattern), name="from")
    ] = ()
    to: Annotated[
        tuple[str, ...],
        setting("Namespaces of the target cluster that these ManagedResources may write to.", each(_pattern)),
    ] = ()
    to_own: Annotated[
        bool, setting("Allow these ManagedResources to write to the target namespace with the same name as their own.")
    ] = False


def _namespace_rule_errors(path: str, value: NamespaceRule) -> Iterator[FieldError]:
    if not value.to and not value.to_own:
        yield required(f"{path}.to", "name at least one namespace, or set toOwn")


_namespace_rule = Check("`to` or `toOwn` given", _namespace_rule_errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyRule:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    from_: Annotated[
        tuple[str, ...], setting("Namespaces of ManagedResources; empty: all.", each(_pattern), name="from")
    ] = ()
    to: Annotated[
        tuple[str, ...], setting("Namespaces of the ManagedResources that these may depend on.", each(_pattern))
    ] = ()


def _dependency_rule_errors(path: str, value: DependencyRule) -> Iterator[FieldError]:
    if not value.to:
        yield required(f"{path}.to", "name at least one namespace")


_dependency_rule = Check("`to` given", _dependency_rule_errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    service_account_name: Annotated[
        str,
        setting(
            "ServiceAccount, in the namespace of the ManagedResource, that writes the objects if the annotation "
            f"`{keys.IMPERSONATED_SERVICE_ACCOUNT}` is missing; empty: the agent's own account.",
            Check("", _name_if_given),
        ),
    ] = ""
    allowed_service_account_names: Annotated[
        tuple[str, ...], setting("Allowed values of the annotation; empty: all.", each(_pattern))
    ] = ()
    required: Annotated[
        bool, setting("Refuse ManagedResources without the annotation if `serviceAccountName` is empty.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    namespaced_kinds: Annotated[KindLists, setting("Namespaced kinds.")] = field(default_factory=KindLists)
    cluster_scoped_kinds: Annotated[KindLists, setting("Cluster-scoped kinds.")] = field(default_factory=KindLists)
    namespaces: Annotated[
        tuple[NamespaceRule, ...],
        setting(
            "Rules for the namespaces of objects, of which one must match; empty: all namespaces are allowed. "
            "A Namespace counts as an object in itself.",
            each(_namespace_rule),
        ),
    ] = ()
    dependencies: Annotated[
        tuple[DependencyRule, ...],
        setting(
            "Rules for [dependencies](managed-resource-order.md#dependencies) on ManagedResources in other "
            "namespaces, of which one must match; empty: no such dependency is allowed.",
            each(_dependency_rule),
        ),
    ] = ()
    impersonation: Annotated[Impersonation, setting("Impersonation of ServiceAccounts for writing objects.")] = field(
        default_factory=Impersonation
    )
