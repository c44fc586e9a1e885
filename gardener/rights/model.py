"""Rows of the table of rights, and the search for those that permit a request.

A request to create does not name the object: then the place counts, and the admission sees the name. A list is
permitted if its selectors limit it to the object set.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gardener.garden.seed_graph import Graph
from gardener.keys import SEED_LABEL_PREFIX
from gardener.rights.metadata import Limits
from gardener.rights.requests import Attributes
from kube.objects import Key
from kube.resources import Resource

READ = frozenset({"get", "list", "watch"})
CHANGE = frozenset({"update", "patch"})
_OF_MANY = READ | {"deletecollection"}
_NOTHING = Graph({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request, and the area of its user's rights.

    Attributes:
        seed: of the gardenlet.
        project, namespace: of the member.
        with_selectors: whether the API server passes selectors on.
    """

    requested: Attributes
    seed: str = ""
    graph: Graph = _NOTHING
    with_selectors: bool = True
    project: str = ""
    namespace: str = ""

    @property
    def key(self) -> Key:
        return Key(self.requested.namespace, self.requested.name)

    def selects(self, field: str, value: str = "") -> bool:
        """Whether a list is limited to objects with this field, by default that of the Seed; True without selectors."""
        return not self.with_selectors or self.requested.field_selector.demands(field, value or self.seed)

    def selects_own(self) -> bool:
        """Whether a list is limited to objects with the label of the Seed."""
        return self.with_selectors and self.requested.label_selector.demands(f"{SEED_LABEL_PREFIX}{self.seed}", "true")


Test = Callable[[Case], bool]


def never(_: Case) -> bool:
    return False


def always(_: Case) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSet:
    """Objects of a right.

    Attributes:
        title: of the set, for the documentation.
        has: whether the named object is one.
        lists: whether a list is limited to such objects.
        place: whether such objects may be created in a place, since their name is unknown.
    """

    title: str
    has: Test
    lists: Test = never
    place: Test = never


ALL = ObjectSet(title="all", has=always, lists=always, place=always)


@dataclass(frozen=True, slots=True)
class Right:
    """A row: verbs for the objects of a set.

    Attributes:
        limits: permitted changes of updates; None: all.
    """

    resource: Resource
    verbs: frozenset[str]
    objects: ObjectSet
    subresource: str = ""
    limits: Limits | None = None

    def permits(self, case: Case) -> bool:
        """Whether it permits a request about its kind and subresource."""
        requested, objects = case.requested, self.objects
        if requested.verb not in self.verbs:
            return False
        if requested.name:
            return objects.has(case)
        if requested.verb == "create":
            return objects.place(case) and (not requested.subresource or objects is ALL)
        return requested.verb in _OF_MANY and objects.lists(case)


class Table:
    """Rows by kind and subresource."""

    def __init__(self, rights: Iterable[Right]) -> None:
        self.rights = tuple(rights)
        self._by_kind: dict[tuple[str, str, str], list[Right]] = {}
        for each in self.rights:
            self._by_kind.setdefault((each.resource.group, each.resource.plural, each.subresource), []).append(each)

    def permitting(self, case: Case) -> Iterator[Right]:
        """Rows that permit a request."""
        return (each for each in self._of_kind(case.requested) if each.permits(case))

    def permits(self, case: Case) -> bool:
        return any(True for _ in self.permitting(case))

    def about(self, resource: Resource, verb: str, subresource: str = "") -> Iterator[Right]:
        """Rows with a verb, for all object sets."""
        rows = self._by_kind.get((resource.group, resource.plural, subresource), ())
        return (each for each in rows if verb in each.verbs)

    def written(self) -> tuple[Resource, ...]:
        """Kinds with objects that may be written, and others that may not."""
        limited = (r for r in self.rights if r.verbs - READ and not r.subresource and r.objects is not ALL)
        return tuple(sorted({each.resource for each in limited}, key=lambda kind: (kind.group, kind.plural)))

    def written_subresources(self, resource: Resource) -> list[str]:
        rows = (each for each in self.rights if each.resource == resource and each.verbs - READ)
        return sorted({each.subresource for each in rows} - {""})

    def _of_kind(self, requested: Attributes) -> list[Right]:
        return self._by_kind.get((requested.group, requested.resource, requested.subresource), [])
