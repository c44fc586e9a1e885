"""The descriptor of one kind of the garden API, from which its two webhooks and all that belongs to them derive.

    PROJECT = Kind(
        definition=project.PROJECT,                # what the kind is called, and its schema
        defaults=(set_defaults,),                  # change write.new; need no cluster
        mutations=(add_owner,),                    # change write.new; may ask write.garden and write.user
        checks=(names, members),                   # what is wrong with write.new; need no cluster
        references=(seed_exists,),                 # the same, but ask write.garden; not for what is being deleted
        changes=(immutable_fields,),               # UPDATE: what is wrong with going from write.old to write.new
        rights=(manage_members,),                  # what the user must be allowed besides
        limits=(capacity,),                        # how many others there may be, counted now
        deletions=(confirmed,),                    # DELETE: why write.new may not be deleted
        deprecations=(old_role,),                  # what the user is told about write.new as it was sent
        warnings=(expired,),                       # what the user is told about write.new as it will be stored
        reads=(SEEDS,),                            # the kinds that rules ask write.garden about
    )

All are tuples of functions of a `Write` (`webhooks.garden.write`). Mutations and defaults return nothing; the others
yield findings (`webhooks.garden.findings`), rights, limits or texts. Rules are pure: the engine asks API servers.

`checks` and `references` are ratcheted: on UPDATE a finding that the stored object gives as well, at a field of the
same value, is dropped. So a rule about an object as it is belongs there and needs no look at `write.old`, and one about
a transition belongs into `changes`. In particular a reference that does not change is not refused when its target has
gone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from gardener.garden.definitions import Definition
from kube.objects import Object, mapping, metadata
from kube.resources import Resource
from webhooks.garden.findings import Finding, ratcheted
from webhooks.garden.operations import Asks, keep_sequence
from webhooks.garden.write import Limit, Limits, Mutation, Right, Rights, Rule, Warnings, Write
from webhooks.registration import EVERYTHING, WRITE, Selector

_BOOKKEEPING = ("resourceVersion", "generation", "managedFields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    definition: Definition
    objects: Selector = EVERYTHING
    """Which objects of the kind the webhooks are asked about."""
    defaults: tuple[Mutation, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    asks: Asks | None = None
    """For kinds with `operation.sequence`; see `webhooks.garden.operations`."""
    checks: tuple[Rule, ...] = ()
    references: tuple[Rule, ...] = ()
    changes: tuple[Rule, ...] = ()
    rights: tuple[Rights, ...] = ()
    limits: tuple[Limits, ...] = ()
    deletions: tuple[Rule, ...] = ()
    deprecations: tuple[Warnings, ...] = ()
    warnings: tuple[Warnings, ...] = ()
    reads: tuple[Resource, ...] = ()
    status_mutations: tuple[Mutation, ...] = ()
    """For the status subresource; all other kinds' status writes never wait for a webhook."""
    status_checks: tuple[Rule, ...] = ()

    @property
    def is_mutating(self) -> bool:
        return bool(self.defaults or self.mutations or self.asks or self.deprecations or self.status_mutations)

    @property
    def resource(self) -> Resource:
        return self.definition.resource

    @property
    def validated(self) -> tuple[str, ...]:
        """The operations that the validating webhook is asked about."""
        is_checked = self.checks or self.references or self.changes or self.rights or self.warnings
        return (*(WRITE if is_checked else ()), *(("DELETE",) if self.deletions else ()))

    # --- the pass of a request

    def mutate(self, write: Write) -> None:
        """Changes `write.new` in place."""
        if write.subresource:
            for change in self.status_mutations:
                change(write)
            return
        if not is_unchanged(write):
            for change in chain(self.defaults, self.mutations):
                change(write)
        if self.asks is not None:
            keep_sequence(write, self.asks)

    def findings(self, write: Write) -> Iterator[Finding]:
        if write.subresource:
            yield from _applied(self.status_checks, write)
        elif write.operation == "DELETE":
            yield from _applied(self.deletions, write)
        elif write.is_create:
            yield from _applied(self._state_rules(write), write)
        elif not is_unchanged(write):
            yield from _applied(self.changes, write)
            found = list(_applied(self._state_rules(write), write))
            if found:
                before = _applied(self._state_rules(write), write.of_old())
                yield from ratcheted(found, write.new, before, write.old)

    def rights_for(self, write: Write) -> Iterator[Right]:
        if _is_change(write):
            for rights in self.rights:
                yield from rights(write)

    def limits_of(self, write: Write) -> Iterator[Limit]:
        if _is_change(write):
            for limits in self.limits:
                yield from limits(write)

    def deprecations_in(self, write: Write) -> Iterator[str]:
        return _told(self.deprecations, write)

    def warnings_about(self, write: Write) -> Iterator[str]:
        return _told(self.warnings, write)

    def _state_rules(self, write: Write) -> Iterable[Rule]:
        return self.checks if write.is_deleting else (*self.checks, *self.references)


def foreign(resource: Resource) -> Definition:
    """For a kind of Kubernetes itself: rules read its metadata only."""
    return Definition(resource=resource, description="", fields={})


def _applied(rules: Iterable[Rule], write: Write) -> Iterator[Finding]:
    return chain.from_iterable(rule(write) for rule in rules)


def _told(rules: Iterable[Warnings], write: Write) -> Iterator[str]:
    if _is_change(write):
        for rule in rules:
            yield from rule(write)


def _is_change(write: Write) -> bool:
    return not write.subresource and write.operation != "DELETE" and not is_unchanged(write)


def is_unchanged(write: Write) -> bool:
    """Whether an UPDATE leaves everything as it is but for bookkeeping and status."""
    return write.is_update and _content(write.new) == _content(write.old) and _meta(write.new) == _meta(write.old)


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _meta(obj: Object) -> Object:
    return {name: value for name, value in mapping(metadata(obj)).items() if name not in _BOOKKEEPING}
