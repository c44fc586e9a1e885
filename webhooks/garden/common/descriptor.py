"""Descriptor of one kind of the garden API, from which its two webhooks and all their parts derive.

    PROJECT = Kind(
        definition=project.PROJECT,                # names of the kind, and its schema
        defaults=(set_defaults,),                  # change write.new; need no cluster
        mutations=(add_owner,),                    # change write.new; may use write.garden and write.user
        asks=asks_for_work,                        # UPDATE: whether an annotation requests work (operation.sequence)
        checks=(names, members),                   # errors in write.new; need no cluster
        references=(seed_exists,),                 # the same, with write.garden; skipped during deletion
        changes=(immutable_fields,),               # UPDATE: errors in the change from write.old to write.new
        of_spec=Rules(checks=(regions,)),          # the same three, for rules without findings if the spec is equal
        rights=(manage_members,),                  # additional rights that the user needs
        limits=(capacity,),                        # maximum number of others, counted now
        contents=(kubeconfigs,),                   # named objects whose content is checked, read now
        deletions=(confirmed,),                    # DELETE: reasons why write.new may not be deleted
        deletion_limits=(empty,),                  # DELETE: maximum number of others, counted now
        deprecations=(old_role,),                  # warnings about write.new as it was sent
        warnings=(expired,),                       # warnings about write.new as it will be stored
        reads=(SEEDS,),                            # kinds that rules read from write.garden
        status_mutations=(), status_checks=(),     # as their namesakes, on UPDATE of the status
    )

Most are tuples of functions of a `Write` (module `write`). Mutations and defaults return nothing; the others yield
findings (module `findings`), rights, limits or texts. Rules are pure: the engine calls API servers.

`checks` and `references` are ratcheted: on UPDATE a finding that the stored object has as well, at a field of the same
value, is dropped. So a rule about an object as it is belongs there and does not read `write.old`, and one about a
transition belongs in `changes`. In particular an unchanged reference is not refused after its target is gone.

Controllers write metadata of Shoots all the time. Rules that read nothing of the object but its spec, name and
namespace would only yield findings that are dropped again; those in `of_spec` are skipped while the spec is unchanged:
for a Shoot they take about 85 of the 165 us of a review.
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
    """Name of its webhooks; defaults to the plural of the kind."""
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
    """Selects objects of the kind for which the webhooks are called."""
    condition: str = ""
    """The same, as an expression in CEL."""
    defaults: tuple[Mutation, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    is_frozen: Callable[[Write], bool] = _never
    """Whether the spec may not change for now, for a reason other than deletion of the object."""
    asks: Asks | None = None
    """Set for kinds with `operation.sequence`; see `webhooks.garden.common.operations`."""
    checks: tuple[Rule, ...] = ()
    references: tuple[Rule, ...] = ()
    changes: tuple[Rule, ...] = ()
    of_spec: Rules = _NO_RULES
    as_numbered: Callable[[Object], Object] = _as_stored
    """Returns the object that the paths of findings lead through, for ratcheting, if it is not the stored form."""
    rights: tuple[Rights, ...] = ()
    limits: tuple[Limits, ...] = ()
    contents: tuple[Contents, ...] = ()
    deletions: tuple[Rule, ...] = ()
    deletion_limits: tuple[Limits, ...] = ()
    deprecations: tuple[Warnings, ...] = ()
    warnings: tuple[Warnings, ...] = ()
    reads: tuple[Resource, ...] = ()
    status_mutations: tuple[Mutation, ...] = ()
    """Applied to the status subresource; status writes of all other kinds never wait for a webhook."""
    status_checks: tuple[Rule, ...] = ()

    @property
    def is_mutating(self) -> bool:
        return bool(self.defaults or self.mutations or self.asks or self.deprecations or self.status_mutations)

    @property
    def resource(self) -> Resource:
        return self.definition.resource

    @property
    def validated(self) -> tuple[str, ...]:
        """Operations for which the validating webhook is called."""
        of_spec = self.of_spec != _NO_RULES
        of_state = self.checks or self.references or self.changes
        is_checked = of_spec or of_state or self.rights or self.limits or self.contents or self.warnings
        return (*(WRITE if is_checked else ()), *(("DELETE",) if self.deletions or self.deletion_limits else ()))

    # --- the pass of a request

    def mutate(self, write: Write) -> None:
        """Change `write.new` in place."""
        if write.subresource:
            for change in self.status_mutations:
                change(write)
            return
        if not write.is_unchanged:
            stays = write.is_update and "spec" in write.old and not write.spec_is_changed
            for change in chain(self.defaults, self.mutations):
                change(write)
            if stays and (write.is_deleting or self.is_frozen(write)):
                # Defaults of a later release would be changes, which are refused in this state.
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
        """Rules for a new object, regardless of its creator."""
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
    """Definition of a kind of Kubernetes itself, of which rules read only the metadata."""
    return Definition(resource=resource, description="", fields={})


def _applied(rules: Iterable[Rule], write: Write) -> Iterator[Finding]:
    return chain.from_iterable(map(call, rules, repeat(write)))


def _warnings(rules: Iterable[Warnings], write: Write) -> Iterator[str]:
    if _is_change(write):
        for rule in rules:
            yield from rule(write)


def _is_change(write: Write) -> bool:
    return not write.subresource and write.operation != "DELETE" and not write.is_unchanged
