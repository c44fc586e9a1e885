"""Writes of gardenlets, and objections to them: types and parts that the rules share."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from gardener.garden.seed_graph import KINDS, Graph, Node, Reference
from gardener.rights.model import Case
from gardener.rights.requests import Attributes
from kube.objects import Key, Object
from kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write of a gardenlet.

    Attributes:
        new: empty for a deletion.
        old: empty for a creation.
        confirmed: references of `unconfirmed` that have the label of the Seed.
    """

    seed: str
    user: str
    resource: Resource
    verb: str
    key: Key
    subresource: str = ""
    new: Object
    old: Object
    now: datetime
    confirmed: Collection[Reference] = ()


@dataclass(frozen=True, slots=True)
class Objection:
    message: str
    code: int = 403


Rule = Callable[[Write, Graph], Iterator[Objection]]
"""Objections to a write of an object that belongs to the Seed."""


def case_of(write: Write, graph: Graph) -> Case:
    requested = Attributes(
        user=write.user,
        verb=write.verb,
        namespace=write.key.namespace,
        group=write.resource.group,
        resource=write.resource.plural,
        subresource=write.subresource,
        name=write.key.name,
    )
    return Case(seed=write.seed, requested=requested, graph=graph)


def node_of(write: Write, obj: Object) -> Node:
    return KINDS[write.resource].node(obj) if obj else Node(write.key)


def added(write: Write) -> Iterator[Reference]:
    if write.new:
        before, now = node_of(write, write.old), node_of(write, write.new)
        known = {*before.uses, *before.named}
        yield from (each for each in dict.fromkeys((*now.uses, *now.named)) if each not in known)


def not_to_be_used(write: Write, reference: Reference) -> Objection:
    used = f'{reference.resource.plural} "{reference.key}"'
    return Objection(f'seed "{write.seed}" may not refer to {used}; have an operator add this reference')


def uses_no_more(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    if write.old:
        for each in added(write):
            yield not_to_be_used(write, each)
