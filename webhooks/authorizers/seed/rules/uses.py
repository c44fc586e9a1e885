"""Objects may not use more than before, since a gardenlet may read everything that objects of its Seed use.

Exceptions are references that a gardenlet has to enter: the bucket of its Seed, credentials for it, and its own Seed
and Gardenlet with credentials that others have confirmed for the Seed: by a label of the credentials, or by referring
to them in the Seed, its ManagedSeed or its Gardenlet.
"""

from collections.abc import Iterator

from gardener import keys
from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import GENERATED_PREFIX, SOURCE_PREFIX, Graph, Reference, is_reserved
from gardener.garden.seeds import namespace_of
from kube import resources as kubernetes
from kube.objects import Key, labels
from webhooks.authorizers.seed.rules.common import Objection, Write, added, node_of, not_to_be_used


def seed_stays(write: Write, graph: Graph) -> Iterator[Objection]:
    """Refuse another Seed, except for a backup that follows its Shoot."""
    if not write.new:
        return
    permitted = {write.seed, *node_of(write, write.old).seeds}
    if write.resource == garden.BACKUP_ENTRIES:
        shoot = graph.shoot_of_backup(write.key)
        if shoot is not None and graph.owns(write.seed, shoot):
            permitted.update(shoot.seeds)
    for seed in node_of(write, write.new).seeds:
        if seed not in permitted:
            yield Objection(f'seed "{write.seed}" may not give the object to seed "{seed}"')


def buckets(write: Write, graph: Graph) -> Iterator[Objection]:
    """Allow the bucket of the Seed; the source of a copied backup may be in that of the Shoot's former Seed."""
    for each in added(write):
        own = graph.seed(write.seed)
        if graph.has(write.seed, each.resource, each.key) or (own is not None and own.uid == each.key.name):
            continue
        is_source = write.key.name.startswith(SOURCE_PREFIX)
        if is_source and _is_bucket_of_entry(write, graph, each):
            continue
        yield not_to_be_used(write, each)


def _is_bucket_of_entry(write: Write, graph: Graph, bucket: Reference) -> bool:
    entry = graph.get(garden.BACKUP_ENTRIES, Key(write.key.namespace, write.key.name.removeprefix(SOURCE_PREFIX)))
    return entry is not None and bucket in entry.uses


def credentials_of_bucket(write: Write, graph: Graph) -> Iterator[Objection]:
    """Allow credentials that the Seed names, or that were generated for the bucket."""
    own = graph.seed(write.seed)
    generated = Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{write.key.name}"))
    for each in added(write):
        if each != generated and (own is None or each not in own.uses):
            yield not_to_be_used(write, each)


def credentials_of_seed(write: Write, graph: Graph) -> Iterator[Objection]:
    """Allow confirmed references in the own Seed; in a Seed made from a template, those of the template."""
    child = graph.template(write.seed, write.key.name)
    for each in _entered(write):
        if write.key.name == write.seed:
            yield from _not_confirmed(write, each, graph)
        elif child is None or each not in child.named:
            yield not_to_be_used(write, each)


def credentials_of_gardenlet(write: Write, graph: Graph) -> Iterator[Objection]:
    for each in _entered(write):
        yield from _not_confirmed(write, each, graph)


def _entered(write: Write) -> Iterator[Reference]:
    """New references in the spec of a Seed; its bucket follows from its uid."""
    before = node_of(write, write.old).named
    return (each for each in node_of(write, write.new).named if each not in before)


def _not_confirmed(write: Write, used: Reference, graph: Graph) -> Iterator[Objection]:
    if is_reserved(used):
        yield not_to_be_used(write, used)
    elif used.key.namespace != namespace_of(write.seed) and used not in {*graph.entered(write.seed), *write.confirmed}:
        yield Objection(
            f'{used.resource.kind} "{used.key}" is not confirmed for seed "{write.seed}"; have a user with the right '
            f"to read it run `{confirming_command(used, write.seed)}`"
        )


def confirming_command(used: Reference, seed: str) -> str:
    kind = ".".join(filter(None, (used.resource.plural, used.resource.group)))
    label = f"{keys.USABLE_BY_SEED_PREFIX}{seed}=true"
    return f"kubectl --namespace {used.key.namespace} label --overwrite {kind} {used.key.name} {label}"


def unconfirmed(write: Write, graph: Graph) -> list[Reference]:
    """References that need the label of the Seed for the write to be permitted."""
    is_own = write.resource in {garden.SEEDS, garden.GARDENLETS} and write.key.name == write.seed
    known = set(graph.entered(write.seed))
    return [each for each in _entered(write) if each not in known and not is_reserved(each)] if is_own else []


def confirms_nothing(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    """Refuse labels that confirm credentials: users who may read these set them, not gardenlets."""
    before = labels(write.old)
    for name, value in labels(write.new).items():
        if name.startswith(keys.USABLE_BY_SEED_PREFIX) and before.get(name) != value:
            yield Objection(f'seed "{write.seed}" may not set label "{name}"; have an operator set it')
