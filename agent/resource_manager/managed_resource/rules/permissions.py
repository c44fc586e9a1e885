"""Rights and identity of a ManagedResource: rules of the configuration, without I/O.

Otherwise, every client with write access to ManagedResources and Secrets would have all rights of the agent. Two rules
narrow that:

restrictions    of kinds and namespaces, by the configuration; constant for a ManagedResource as long as this process
                runs, so restricted objects are part of its plan
impersonation   of a ServiceAccount for writes, so that the API server decides; by the configuration and by an
                annotation, which the author of the ManagedResource chooses, but only within its own namespace

A restricted object is neither written nor deleted. That is an error of this object alone, and lasts until the
configuration or the ManagedResource changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from agent.resource_manager.managed_resource.rules.redaction import without_values
from config.resource_manager.restrictions import Impersonation, Kinds, Restrictions
from gardener import keys
from gardener.managed_resource.plan import Restriction, unrestricted
from kube.errors import Forbidden
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, annotations, key
from kube.resources import NAMESPACES, Resource
from kube.validation import FieldError, forbidden, invalid, required

_SECTION = "controllers.managedResource.restrictions"
_ANNOTATION = f"metadata.annotations[{keys.IMPERSONATED_SERVICE_ACCOUNT}]"
_ANY = "*"
_SHOWN = 80
"""Maximum characters of an invalid value in a message."""


class RestrictedError(Exception):
    """An object may not be written or deleted; the message names the rule."""


# --- restrictions


def restriction_of(restrictions: Restrictions, namespace: str) -> Restriction:
    """Return the restriction of the ManagedResources of a namespace."""
    lists = (restrictions.namespaced_kinds, restrictions.cluster_scoped_kinds)
    if not restrictions.namespaces and not any(listed.allow or listed.deny for listed in lists):
        return unrestricted

    def restriction(resource: Resource, key: Key) -> str:
        return _kind_problem(restrictions, resource) or _namespace_problem(restrictions, resource, key, namespace)

    return restriction


def _kind_problem(restrictions: Restrictions, resource: Resource) -> str:
    lists, field = restrictions.cluster_scoped_kinds, "clusterScopedKinds"
    if resource.namespaced:
        lists, field = restrictions.namespaced_kinds, "namespacedKinds"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    if _is_in(lists.deny, resource):
        return f"ManagedResources may not have objects of kind {kind}: {_SECTION}.{field}.deny forbids it"
    if lists.allow and not _is_in(lists.allow, resource):
        return f"ManagedResources may not have objects of kind {kind}: it is not in {_SECTION}.{field}.allow"
    return ""


def _is_in(listed: Iterable[Kinds], resource: Resource) -> bool:
    return any(
        not {_ANY, resource.group}.isdisjoint(entry.api_groups) and not {_ANY, resource.kind}.isdisjoint(entry.kinds)
        for entry in listed
    )


def _namespace_problem(restrictions: Restrictions, resource: Resource, key: Key, own: str) -> str:
    is_namespace = (resource.group, resource.kind) == (NAMESPACES.group, NAMESPACES.kind)
    if not restrictions.namespaces or not (resource.namespaced or is_namespace):
        return ""
    # Deleting a Namespace deletes all objects in it.
    wanted = key.name if is_namespace else key.namespace
    for rule in restrictions.namespaces:
        if rule.from_ and not _fits(own, rule.from_):
            continue
        if (rule.to_own and wanted == own) or _fits(wanted, rule.to):
            return ""
    return (
        f'ManagedResources of namespace "{own}" may not write to namespace "{wanted}": {_SECTION}.namespaces does '
        "not allow it"
    )


def may_depend(restrictions: Restrictions, own: str, other: str) -> bool:
    """Whether the ManagedResources of a namespace may depend on those of another one."""
    return any(
        (not rule.from_ or _fits(own, rule.from_)) and _fits(other, rule.to) for rule in restrictions.dependencies
    )


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# --- impersonation


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity for the writes of a ManagedResource."""

    account: Key | None = None
    """ServiceAccount; None for the agent itself."""
    problem: str = ""
    """Reason why nothing may be written; empty if writes are permitted."""

    @property
    def user(self) -> str:
        """User name of the ServiceAccount at the API server; empty for the agent itself."""
        return f"system:serviceaccount:{self.account.namespace}:{self.account.name}" if self.account else ""

    def error_text(self, error: Exception) -> str:
        """Return the text of an error, with the account if its rights are missing."""
        text = without_values(str(error))
        if self.account is None or not isinstance(error, Forbidden):
            return text
        return f"as ServiceAccount {self.account}: {text}"


def identity_of(managed_resource: Object, impersonation: Impersonation) -> Identity:
    requested = annotations(managed_resource).get(keys.IMPERSONATED_SERVICE_ACCOUNT)
    if problems := _problems_of(requested, impersonation):
        return Identity(problem=f"nothing is written or deleted: {'; '.join(map(str, problems))}")
    name = impersonation.service_account_name if requested is None else requested
    return Identity(Key(key(managed_resource).namespace, name)) if name else Identity()


def _problems_of(requested: str | None, impersonation: Impersonation) -> list[FieldError]:
    field = f"{_SECTION}.impersonation"
    if requested is None:
        if impersonation.required and not impersonation.service_account_name:
            detail = f"{field}.required demands the name of the ServiceAccount that writes the objects"
            return [required(_ANNOTATION, detail)]
        return []
    shown = requested if len(requested) <= _SHOWN else f"{requested[:_SHOWN]}…"
    if problems := dns_subdomain_problems(requested):
        return [invalid(_ANNOTATION, shown, f"must be the name of a ServiceAccount: {'; '.join(problems)}")]
    allowed = impersonation.allowed_service_account_names
    if allowed and not _fits(requested, allowed):
        return [forbidden(_ANNOTATION, f'"{shown}" is not in {field}.allowedServiceAccountNames')]
    return []


# --- both


@dataclass(frozen=True, slots=True)
class Owner:
    """ManagedResource for which objects are written and removed."""

    name: Key
    origin: str
    """Stamp on its objects."""
    identity: Identity
    restriction: Restriction
    """Restriction of its namespace, by the configuration."""

    @classmethod
    def of(cls, managed_resource: Object, *, origin: str, restrictions: Restrictions) -> Self:
        name = key(managed_resource)
        identity = identity_of(managed_resource, restrictions.impersonation)
        return cls(name, origin, identity, restriction_of(restrictions, name.namespace))

    @property
    def is_restricted(self) -> bool:
        return bool(self.identity.problem) or self.restriction is not unrestricted

    def problem(self, resource: Resource, key: Key) -> str:
        """Return the reason why an object may not be written or deleted; empty if it may."""
        return self.identity.problem or self.restriction(resource, key)
