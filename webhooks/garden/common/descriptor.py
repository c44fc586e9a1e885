"""The descriptor of one kind of the garden API, from which its two webhooks and all that belongs to them derive.

    PROJECT = Kind(
        definition=project.PROJECT,                # what the kind is called, and its schema
        defaults=(set_defaults,),                  # change write.new; need no cluster
        mutations=(add_owner,),                    # change write.new; may ask write.garden and write.user
        asks=asks_for_work,                        # UPDATE: whether an annotation asks for work (operation.sequence)
        checks=(names, members),                   # what is wrong with write.new; need no cluster
        references=(seed_exists,),                 # the same, but ask write.garden; not for what is being deleted
        changes=(immutable_fields,),               # UPDATE: what is wrong with going from write.old to write.new
        of_spec=Rules(checks=(regions,)),          # the same three, of rules that an equal spec gives nothing to find
        rights=(manage_members,),                  # what the user must be allowed besides
        limits=(capacity,),                        # how many others there may be, counted now
        contents=(kubeconfigs,),                   # named objects whose content is checked, read now
        deletions=(confirmed,),                    # DELETE: why write.new may not be deleted
        deletion_limits=(empty,),                  # DELETE: how many others there may be, counted now
        deprecations=(old_role,),                  # warnings about write.new as it was sent
        warnings=(expired,),                       # warnings about write.new as it will be stored
        reads=(SEEDS,),                            # the kinds that rules ask write.garden about
        status_mutations=(), status_checks=(),     # as their namesakes, on UPDATE of the status
    )

Most are tuples of functions of a `Write` (module `write`). Mutations and defaults return nothing; the others
yield findings (module `findings`), rights, limits or texts. Rules are pure: the engine asks API servers.

`checks` and `references` are ratcheted: on UPDATE a finding that the stored object gives as well, at a field of the
same value, is dropped. So a rule about an object as it is belongs there and needs no look at `write.old`, and one about
a transition belongs into `changes`. In particular a reference that does not change is not refused when its target has
gone.

Controllers write metadata of Shoots all the time. Rules that read nothing of the object but its spec, name and
namespace would only find what is dropped again; those in `of_spec` are not asked at all while the spec stays as it is:
of a Shoot they take about 85 of the 165 us of a review.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import call

from gardener.api.definition import Definition
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.common.findings import Finding, ratcheted
from webhooks.garden.common.operations import Asks, keep_sequence
from webhooks.garden.common.write import (
    Content,
    Contents,
    Limit,
    Limits,
    Mutation,
    Right,
    Rights,
    Rule,
    Warnings,
    Write,
)
from webhooks.rules.registration import EVERYTHING, WRITE, Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    checks: tuple[Rule, ...] = ()
    references: tuple[Rule, ...] = ()
    changes: tuple[Rule, ...] = ()


_NO_RULES = Rules()


def _as_stored(obj: Object) -> Object:
    return obj


def _never(_: Write) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    definition: Definition
    name: str = ""
    """Of its webhooks; empty: the plural of the kind."""
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
    """Objects of the kind that the webhooks are asked about."""
    condition: str = ""
    """The same, as an expression in CEL."""
    defaults: tuple[Mutation, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    is_frozen: Callable[[Write], bool] = _never
    """Whether the spec may not change for now, for another reason than that the object is being deleted."""
    asks: Asks | None = None
    """For kinds with `operation.sequence`; see `webhooks.garden.common.operations`."""
    checks: tuple[Rule, ...] = ()
    references: tuple[Rule, ...] = ()
    changes: tuple[Rule, ...] = ()
    of_spec: Rules = _NO_RULES
    as_numbered: Callable[[Object], Object] = _as_stored
    """For ratcheting: the object that the paths of findings lead through, where it is not the stored form."""
    rights: tuple[Rights, ...] = ()
    limits: tuple[Limits, ...] = ()
    contents: tuple[Contents, ...] = ()
    deletions: tuple[Rule, ...] = ()
    deletion_limits: tuple[Limits, ...] = ()
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
        of_spec = self.of_spec != _NO_RULES
        of_state = self.checks or self.references or self.changes
        is_checked = of_spec or of_state or self.rights or self.limits or self.contents or self.warnings
        return (*(WRITE if is_checked else ()), *(("DELETE",) if self.deletions or self.deletion_limits else ()))

    # --- the pass of a request

    def mutate(self, write: Write) -> None:
        """Changes `write.new` in place."""
        if write.subresource:
            for change in self.status_mutations:
                change(write)
            return
        if not write.is_unchanged:
            stays = write.is_update and "spec" in write.old and not write.spec_is_changed
            for change in chain(self.defaults, self.mutations):
                change(write)
            if stays and (write.is_deleting or self.is_frozen(write)):
                # Defaults that came with a later release would be changes, and those are refused then.
                write.new["spec"] = write.old["spec"]
        if self.asks is not None:
            keep_sequence(write, self.asks)

    def findings(self, write: Write) -> Iterator[Finding]:
        if write.subresource:
            yield from _applied(self.status_checks, write)
        elif write.operation == "DELETE":
            yield from _applied(self.deletions, write)
        elif write.is_create:
            yield from _applied(self.rules_of_creation(write), write)
        elif not write.is_unchanged:
            of_spec = self.of_spec if write.spec_is_changed else _NO_RULES
            yield from _applied((*of_spec.changes, *self.changes), write)
            rules = self._state_rules(of_spec, write)
            found = list(_applied(rules, write))
            if found:
                before = _applied(rules, write.of_old())
                yield from ratcheted(found, self.as_numbered(write.new), before, self.as_numbered(write.old))

    def rules_of_creation(self, write: Write) -> Sequence[Rule]:
        """What a new object is checked by, whoever creates it."""
        return self._state_rules(self.of_spec, write)

    def rights_for(self, write: Write) -> Iterator[Right]:
        if _is_change(write):
            for rights in self.rights:
                yield from rights(write)

    def limits_of(self, write: Write) -> Iterator[Limit]:
        counted = self.limits if _is_change(write) else self.deletion_limits if write.operation == "DELETE" else ()
        for limits in counted:
            yield from limits(write)

    def contents_of(self, write: Write) -> Iterator[Content]:
        if _is_change(write) and not write.is_deleting:
            for contents in self.contents:
                yield from contents(write)

    def deprecations_in(self, write: Write) -> Iterator[str]:
        return _warnings(self.deprecations, write)

    def warnings_about(self, write: Write) -> Iterator[str]:
        return _warnings(self.warnings, write)

    def _state_rules(self, of_spec: Rules, write: Write) -> Sequence[Rule]:
        checks = (*of_spec.checks, *self.checks)
        return checks if write.is_deleting else (*checks, *of_spec.references, *self.references)


def foreign(resource: Resource) -> Definition:
    """For a kind of Kubernetes itself: rules read its metadata only."""
    return Definition(resource=resource, description="", fields={})


def _applied(rules: Iterable[Rule], write: Write) -> Iterator[Finding]:
    return chain.from_iterable(map(call, rules, repeat(write)))


def _warnings(rules: Iterable[Warnings], write: Write) -> Iterator[str]:
    if _is_change(write):
        for rule in rules:
            yield from rule(write)


def _is_change(write: Write) -> bool:
    return not write.subresource and write.operation != "DELETE" and not write.is_unchanged
