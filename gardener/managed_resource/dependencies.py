"""Dependencies between ManagedResources, from the annotation `depends-on`.

New objects are applied only after their dependencies; applied objects are kept up to date regardless of the
dependencies. In the other direction, a ManagedResource that is deleted keeps its objects until its dependants have
removed theirs. A cycle would block forever in either direction: the first is an error of each member, in the second
the other members don't count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from gardener import keys
from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.inventory import all_listed
from gardener.managed_resource.order import Stage, defined_groups, removal_stage
from gardener.responsibility import is_ignored
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import Key, Object, annotations, condition, finalizers, group_of, is_deleting, key, metadata
from kube.validation import FieldError, forbidden, invalid

MOST = 50
"""Dependencies of one ManagedResource."""
_ANNOTATION = f"metadata.annotations[{keys.DEPENDS_ON}]"
_HEALTHY = "healthy"
_SHOWN = 80
"""Characters of a wrong value in a message."""
_LONGEST_ENTRY = 512
"""Maximum length of a valid entry, in characters."""
_LONGEST = MOST * _LONGEST_ENTRY
"""Maximum length of an annotation that is parsed, in characters."""
_REMEMBERED = 8192
"""Cached entries: many ManagedResources usually have the same dependency."""


@dataclass(frozen=True, slots=True)
class Dependency:
    name: Key
    must_be_healthy: bool = False


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies in the annotation; only the valid ones if there are problems."""

    each: tuple[Dependency, ...] = ()
    problems: tuple[FieldError, ...] = ()

    @classmethod
    def of(cls, managed_resource: Object, *, is_permitted: Callable[[str], bool]) -> "Dependencies":
        """Parse the annotation. Args: is_permitted: whether it may depend on those of another namespace."""
        text = annotations(managed_resource).get(keys.DEPENDS_ON)
        if not text:
            return cls()
        own = key(managed_resource)
        if len(text) > _LONGEST:
            detail = f"{len(text)} characters exceed the limit of {_LONGEST}"
            return cls(problems=(invalid(_ANNOTATION, _shown(text), detail),))
        entries = [entry for each in text.split(",") if (entry := each.strip())]
        found: list[Dependency] = []
        problems: list[FieldError] = []
        if len(entries) > MOST:
            detail = f"{len(entries)} dependencies exceed the limit of {MOST}; group them"
            problems.append(invalid(_ANNOTATION, _shown(text), detail))
        for entry in entries[:MOST]:
            dependency = (_parse if len(entry) <= _LONGEST_ENTRY else _parse.__wrapped__)(entry, own.namespace)
            if isinstance(dependency, str):
                problems.append(invalid(_ANNOTATION, _shown(entry), dependency))
            elif dependency.name == own:
                problems.append(invalid(_ANNOTATION, _shown(entry), "a ManagedResource can't depend on itself"))
            elif dependency.name.namespace != own.namespace and not is_permitted(dependency.name.namespace):
                detail = (
                    f'"{_shown(entry)}" is in another namespace, which is neither watched nor allowed by '
                    "controllers.managedResource.restrictions.dependencies; remove it, or have that setting changed"
                )
                problems.append(forbidden(_ANNOTATION, detail))
            else:
                found.append(dependency)
        return cls(tuple(found), tuple(problems))

    @property
    def names(self) -> list[Key]:
        return list(dict.fromkeys(each.name for each in self.each))


def named_dependencies(managed_resource: Object) -> list[Key]:
    """All named dependencies, also those that are not permitted."""
    return Dependencies.of(managed_resource, is_permitted=lambda _: True).names


@lru_cache(_REMEMBERED)
def _parse(entry: str, own_namespace: str) -> Dependency | str:
    """A dependency, or the error of the entry."""
    named, colon, state = entry.partition(":")
    if colon and state != _HEALTHY:
        return f'must be [NAMESPACE/]NAME[:{_HEALTHY}]; there is no ":{_shown(state)}"'
    namespace, slash, name = named.rpartition("/")
    problems = [*(dns_label_problems(namespace) if slash else ()), *dns_subdomain_problems(name)]
    if problems:
        return f"must be [NAMESPACE/]NAME[:{_HEALTHY}]: {'; '.join(dict.fromkeys(problems))}"
    return Dependency(Key(namespace if slash else own_namespace, name), must_be_healthy=bool(colon))


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- unmet dependencies


def unmet(dependency: Dependency, found: Object | None, *, checksum: str | None = None) -> str:
    """Reason to wait for a dependency, a part of a sentence; empty if it is met.

    Args:
        dependency: the dependency.
        found: the ManagedResource, None if there is none.
        checksum: of the present data of its Secrets, if known.
    """
    if found is None:
        return "does not exist; create it, or remove it from the annotation"
    if is_deleting(found):
        return "is being deleted"
    status = found.get("status") or {}
    applied = condition(found, RESOURCES_APPLIED) or {}
    if applied.get("status") != "True":
        return f"is not applied ({applied['reason']})" if applied.get("reason") else "is not applied yet"
    is_observed = status.get("observedGeneration") == metadata(found).get("generation")
    if not is_observed or checksum not in {None, status.get("secretsDataChecksum")}:
        return f"has changes that are not applied yet{', since it is ignored' if is_ignored(found) else ''}"
    return _unhealthy(found) if dependency.must_be_healthy else ""


def _unhealthy(found: Object) -> str:
    """Reason why it is not healthy or not rolled out: a workload is healthy in a roll-out, but may run old pods."""
    healthy, progressing = (condition(found, each) or {} for each in (RESOURCES_HEALTHY, RESOURCES_PROGRESSING))
    if healthy.get("status") != "True":
        return f"is not healthy ({healthy['reason']})" if healthy.get("reason") else "is not healthy yet"
    if progressing.get("status") != "False":
        return f"is not rolled out ({progressing['reason']})" if progressing.get("reason") else "is not rolled out yet"
    return ""


def state_of(managed_resource: Object | None) -> object:
    """All input of `unmet`: as long as it is equal, dependants need no new check."""
    if managed_resource is None:
        return None
    status, meta = managed_resource.get("status") or {}, metadata(managed_resource)
    kinds = (RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING)
    found = [condition(managed_resource, each) or {} for each in kinds]
    conditions = [(each.get("status"), each.get("reason")) for each in found]
    marks = is_deleting(managed_resource), is_ignored(managed_resource)
    return (
        marks,
        meta.get("generation"),
        status.get("observedGeneration"),
        status.get("secretsDataChecksum"),
        conditions,
    )


def has_objects(managed_resource: Object) -> bool:
    """Whether it may have objects in the target, so that it needs its dependencies."""
    return bool(all_listed(managed_resource)) and any(
        name.startswith(keys.FINALIZER) for name in finalizers(managed_resource)
    )


# --- order of several removals


@dataclass(frozen=True, slots=True)
class Related:
    """Relations of a ManagedResource with those that `depends-on` joins, also indirectly."""

    defined: frozenset[str] = frozenset()
    """API groups of the kinds that it, or one of these, defines."""
    awaited: Mapping[Key, Sequence[Object]] = field(default_factory=dict)
    """Other ManagedResources that are deleted at the same time, with their custom resources of these groups: its
    workloads are removed after these, as one of them may be the controller.
    """

    @classmethod
    def of(cls, managed_resource: Object, joined: Iterable[Object], dependencies: AbstractSet[Key]) -> Self:
        """Collect the relations. Args: dependencies: all that it depends on, also indirectly.

        These have to stay until it is gone, so it does not wait for them. If they have such custom resources
        themselves, it uses these and is not their controller: it does not wait for any, else two could wait for
        each other.
        """
        joined = list(joined)
        defined = frozenset[str]().union(*(defined_groups(all_listed(each)) for each in (managed_resource, *joined)))
        awaited: dict[Key, Sequence[Object]] = {}
        for each in joined if defined else ():
            is_dependency = key(each) in dependencies
            keeps_objects = (each.get("spec") or {}).get("keepObjects")
            if not is_dependency and (keeps_objects or not is_deleting(each)):
                continue
            custom = [
                reference
                for reference in all_listed(each)
                if removal_stage(reference) is Stage.CUSTOM_RESOURCES
                and group_of(reference.get("apiVersion") or "") in defined
            ]
            if custom and is_dependency:
                return cls(defined)
            if custom:
                awaited[key(each)] = custom
        return cls(defined, awaited)


# --- the graph

Edges = Callable[[Key], Iterable[Key]]


def cycle_of(start: Key, edges: Edges) -> list[Key]:
    """The shortest path from a member of a cycle to itself, with it at both ends; empty if it is in none."""
    came_from: dict[Key, Key] = {}
    waiting = [start]
    for name in waiting:
        for following in edges(name):
            if following == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if following not in came_from:
                came_from[following] = name
                waiting.append(following)
    return []
