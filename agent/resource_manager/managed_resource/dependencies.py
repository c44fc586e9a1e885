"""ManagedResources that wait for others: to be applied, or to be removed; see `gardener.managed_resource.dependencies`.

Annotations are parsed once per version, and cycles are searched after changes (see `rules.dependency_graph`): a pass
over one of thousands does not visit all others.

There is no polling, and only its own pass plans a dependency. Waiting ManagedResources are remembered here, and
enqueued when one of their dependencies changes. That memory need not outlive the process: it visits all
ManagedResources at its start.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from agent.resource_manager.managed_resource.plans import Plans
from agent.resource_manager.managed_resource.rules.dependency_graph import DependencyGraph
from agent.resource_manager.managed_resource.rules.permissions import may_depend
from agent.resource_manager.managed_resource.source import Source
from config.resource_manager.restrictions import Restrictions
from gardener import keys
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource import dependencies as rules
from gardener.managed_resource.dependencies import state_of, unmet
from gardener.managed_resource.messages import cycle_message, dependant_text, refusal_message
from gardener.responsibility import belongs_to_class
from kube.objects import Key, Object, annotations, condition, is_deleting, key
from kube.runtime.cache import Change


@dataclass(eq=False, kw_only=True, slots=True)
class Dependencies:
    source: Source
    plans: Plans
    restrictions: Restrictions
    resource_class: str
    enqueue: Callable[[Iterable[Key]], None]
    _graph: DependencyGraph = field(default_factory=DependencyGraph, init=False)
    _read: dict[Key, tuple[str, rules.Dependencies]] = field(default_factory=dict, init=False)
    """Annotation and its content, by ManagedResource."""
    _waiting: set[Key] = field(default_factory=set, init=False)
    """ManagedResources with unapplied changes that wait for others."""
    _kept: set[Key] = field(default_factory=set, init=False)
    """Deleted ManagedResources with dependants."""

    def problem(self, managed_resource: Object) -> str:
        """Return the problem of its annotation that makes waiting impossible; empty if there is none."""
        if not annotations(managed_resource).get(keys.DEPENDS_ON):
            return ""
        if problems := self._of(managed_resource).problems:
            return refusal_message(problems)
        cycle = self._graph.cycle_of(key(managed_resource))
        return cycle_message(list(map(str, cycle))) if cycle else ""

    def unmet(self, managed_resource: Object) -> dict[str, str]:
        """Return the reasons to wait, by the names of its dependencies."""
        name = key(managed_resource)
        self._waiting.discard(name)
        each = self._of(managed_resource).each
        if not each:
            return {}
        reasons = {}
        for dependency in each:
            found = self.source.managed_resources.get(dependency.name)
            if why := unmet(dependency, found, checksum=self._checksum(dependency.name)):
                reasons[str(dependency.name)] = why
        if reasons:
            self._waiting.add(name)
        return reasons

    def _checksum(self, name: Key) -> str | None:
        """Return the checksum of the data that a ManagedResource has now; None if it is unknown, and will stay so here.

        Simultaneous changes arrive one after the other: the previous state of a dependency must not satisfy it, so the
        checksum is empty until it is planned again.
        """
        if name in self.plans.unknown:
            return ""
        plan = self.plans.last(name)
        return plan.checksum if plan is not None else None

    def planned(self, name: Key) -> None:
        """Enqueue the ManagedResources that wait for this one after its pass has a plan."""
        self.enqueue([each for each in self._graph.dependants_of(name) if each in self._waiting])

    def dependants(self, name: Key) -> list[str]:
        """Return the ManagedResources that keep this one from removing its objects, and the reasons why these wait."""
        self._kept.discard(name)
        found = []
        for each in self._graph.dependants_of(name):
            dependant = self.source.managed_resources.get(each)
            if dependant is not None and not self._graph.is_cycle(name, each) and rules.has_objects(dependant):
                applied = condition(dependant, RESOURCES_APPLIED) or {}
                message = applied.get("message") or "" if is_deleting(dependant) else ""
                found.append(dependant_text(str(each), message))
        if found:
            self._kept.add(name)
        return found

    def related(self, managed_resource: Object) -> rules.Related:
        """Return the ManagedResources to remove before or after this one in a joint removal."""
        name = key(managed_resource)
        joined = (self.source.managed_resources.get(each) for each in self._graph.joined_with(name) - {name})
        ours = (each for each in joined if each is not None and self._is_ours(key(each)))
        return rules.Related.of(managed_resource, ours, self._graph.all_dependencies_of(name))

    def changed(self, change: Change[Object]) -> None:
        """Enqueue the ManagedResources that wait for this one, or whose dependency cycles may have changed."""
        name = change.key
        before = self._graph.dependencies_of(name)
        if change.new is None:
            self._read.pop(name, None)
        after = self._of(change.new).names if change.new is not None else []
        again = [each for each in {*before, *after} if each in self._kept]
        if state_of(change.old) != state_of(change.new):
            again += [each for each in self._graph.dependants_of(name) if each in self._waiting]
        in_cycles = self._graph.replace(name, after)
        if not change.initial:
            again += filter(self._is_ours, in_cycles)
        self.enqueue(again)

    def _is_ours(self, name: Key) -> bool:
        found = self.source.managed_resources.get(name)
        return found is not None and belongs_to_class(found, resource_class=self.resource_class)

    def forget(self, name: Key) -> None:
        """Forget a deleted ManagedResource."""
        self._waiting.discard(name)
        self._kept.discard(name)

    def _of(self, managed_resource: Object) -> rules.Dependencies:
        name, text = key(managed_resource), annotations(managed_resource).get(keys.DEPENDS_ON) or ""
        if not text:
            self._read.pop(name, None)
            return rules.Dependencies()
        known = self._read.get(name)
        if known is None or known[0] != text:
            permitted = partial(self._is_permitted, name.namespace)
            known = self._read[name] = text, rules.Dependencies.of(managed_resource, is_permitted=permitted)
        return known[1]

    def _is_permitted(self, own: str, other: str) -> bool:
        """Whether the dependency is permitted; it would never be met in a namespace that is not watched."""
        return may_depend(self.restrictions, own, other) and self.source.sees(other)
