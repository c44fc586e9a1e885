"""Graph of dependencies between ManagedResources and its cycles, updated with each change.

A change of a ManagedResource's dependencies only makes and breaks cycles that it is in itself. So a search is only
necessary then, in both directions at the same time, until one of them ends: a new one has no dependants yet.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from gardener.managed_resource.dependencies import cycle_of
from kube.objects import Key

_NONE: frozenset[Key] = frozenset()
_Edges = Mapping[Key, AbstractSet[Key]]


class DependencyGraph:
    def __init__(self) -> None:
        self._dependencies: dict[Key, frozenset[Key]] = {}
        self._dependants: dict[Key, set[Key]] = {}
        self._cycles: dict[Key, frozenset[Key]] = {}
        """Members of the cycles of each member: all that it depends on, and that depend on it, also indirectly."""
        self._ways: dict[Key, list[Key]] = {}

    def replace(self, name: Key, dependencies: Iterable[Key]) -> AbstractSet[Key]:
        """Set the dependencies of one; return the members of cycles that may have changed."""
        before, after = self._dependencies.get(name, _NONE), frozenset(dependencies)
        if before == after:
            return _NONE
        for each in before - after:
            self._dependants[each].discard(name)
            if not self._dependants[each]:
                del self._dependants[each]
        for each in after - before:
            self._dependants.setdefault(each, set()).add(name)
        if after:
            self._dependencies[name] = after
        else:
            del self._dependencies[name]
        return self._find_cycles(name)

    def dependencies_of(self, name: Key) -> AbstractSet[Key]:
        return self._dependencies.get(name, _NONE)

    def dependants_of(self, name: Key) -> AbstractSet[Key]:
        return self._dependants.get(name, _NONE)

    def all_dependencies_of(self, name: Key) -> AbstractSet[Key]:
        """All direct and indirect dependencies."""
        found: set[Key] = set()
        deque(_search({name}, found, self._dependencies), maxlen=0)
        return found

    def joined_with(self, name: Key) -> AbstractSet[Key]:
        """All connected ones, in any direction; including itself if there are any."""
        found: set[Key] = set()
        deque(_search({name}, found, self._dependencies, self._dependants), maxlen=0)
        return found

    def is_cycle(self, one: Key, other: Key) -> bool:
        """Whether each depends on the other, directly or indirectly."""
        return other in self._cycles.get(one, _NONE)

    def cycle_of(self, name: Key) -> list[Key]:
        """Return the shortest path from a member of a cycle to itself, with it at both ends; empty if it is in none."""
        members = self._cycles.get(name)
        if members is None:
            return []
        if name not in self._ways:
            self._ways[name] = cycle_of(name, lambda each: sorted(self._dependencies.get(each, _NONE) & members))
        return self._ways[name]

    def _find_cycles(self, name: Key) -> AbstractSet[Key]:
        members = self._members(name)
        touched = self._cycles.get(name, _NONE) | members
        for each in touched:
            self._cycles.pop(each, None)
            self._ways.pop(each, None)
        self._cycles |= dict.fromkeys(members, members)
        for found in components(touched - members, self._dependencies):
            self._cycles |= dict.fromkeys(found, found)
        return touched

    def _members(self, name: Key) -> frozenset[Key]:
        """Return all members of the cycles of one; empty if it is in no cycle."""
        reached: set[Key] = set()
        reaching: set[Key] = set()
        onward, back = _search({name}, reached, self._dependencies), _search({name}, reaching, self._dependants)
        for _ in zip(onward, back, strict=False):  # the shorter one decides
            if name in reached or name in reaching:
                break
        else:
            if name not in reached | reaching:
                return _NONE
        deque(onward, maxlen=0)
        deque(back, maxlen=0)
        return frozenset(reached & reaching)


def _search(border: AbstractSet[Key], found: set[Key], *edges: _Edges) -> Iterator[None]:
    """Find all reachable nodes, one more step each time."""
    while border:
        border = set().union(*(some.get(each, _NONE) for each in border for some in edges)) - found
        found |= border
        yield


def components(names: AbstractSet[Key], edges: _Edges) -> Iterator[frozenset[Key]]:
    """Return the cycles among these nodes, as sets of mutually connected nodes. After Kosaraju and Sharir."""
    back: dict[Key, set[Key]] = {}
    for name in names:
        for each in edges.get(name, _NONE) & names:
            back.setdefault(each, set()).add(name)
    left = set(names)
    for name in reversed(_by_end(names, edges)):
        if name not in left:
            continue
        found, waiting = {name}, [name]
        left.discard(name)
        for member in waiting:
            more = back.get(member, _NONE) & left
            left -= more
            found |= more
            waiting.extend(more)
        if len(found) > 1 or name in edges.get(name, _NONE):
            yield frozenset(found)


def _by_end(names: AbstractSet[Key], edges: _Edges) -> list[Key]:
    """Return the nodes in the order in which a depth-first search finishes them."""
    done: list[Key] = []
    seen: set[Key] = set()
    for name in names:
        if name in seen:
            continue
        seen.add(name)
        way = [(name, iter(edges.get(name, _NONE) & names))]
        while way:
            following = next((each for each in way[-1][1] if each not in seen), None)
            if following is None:
                done.append(way.pop()[0])
            else:
                seen.add(following)
                way.append((following, iter(edges.get(following, _NONE) & names)))
    return done
