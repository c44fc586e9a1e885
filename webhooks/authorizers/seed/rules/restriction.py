"""Why a gardenlet may not write an object as it is: it is not, or would not be, that of its Seed.

`authorize` sees no objects, and of those that are created not even the name. Here both are known. Besides, an object
may not be made to use more than before: whatever the Seed's objects use, its gardenlet may read. Exceptions are what it
has to enter: the bucket of its Seed, credentials for it, and its own Seed with credentials of the operators.
"""

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from gardener import keys
from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import (
    GENERATED_PREFIX,
    KINDS,
    SOURCE_PREFIX,
    TOKEN_PREFIX,
    Graph,
    Node,
    Reference,
    shoots_of,
)
from gardener.garden.seeds import (
    BOOTSTRAP_ACCOUNT_PREFIX,
    BOOTSTRAP_GROUP,
    BOOTSTRAP_ROLE,
    bootstrap_account,
    bootstrap_binding,
    bootstrap_token_id,
    namespace_of,
)
from kube import resources as kubernetes
from kube.clock import time_or_none
from kube.objects import Key, Object, mapping, mappings, text
from kube.resources import Resource
from webhooks.authorizers.attributes import Attributes, Effect
from webhooks.authorizers.seed.rules.authorize import RIGHTS, authorize

BY_THEMSELVES = frozenset(
    {
        garden.BACKUP_BUCKETS,
        garden.BACKUP_ENTRIES,
        garden.BASTIONS,
        garden.CONTROLLER_INSTALLATIONS,
        garden.SHOOTS,
    }
)
"""Kinds whose objects say to which Seed they belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What a gardenlet wants to write.

    Attributes:
        new: empty for a deletion.
        old: empty for a creation.
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


@dataclass(frozen=True, slots=True)
class Objection:
    message: str
    code: int = 403


def objection(write: Write, graph: Graph) -> Objection | None:
    """None: it may."""
    if not _belongs(write, graph):
        return Objection(f'object does not belong to seed "{write.seed}"')
    for rule in _RULES.get(write.resource, ()):
        for found in rule(write, graph):
            return found
    return None


def _belongs(write: Write, graph: Graph) -> bool:
    kind, rights = KINDS.get(write.resource), RIGHTS.get((write.resource.group, write.resource.plural))
    if rights is None or write.verb not in rights.writes | rights.changes:
        return False
    if write.resource in BY_THEMSELVES and kind is not None:
        before = kind.node(write.old) if write.old else None
        if before is None:
            return write.seed in kind.node(write.new).seeds
        is_backup = write.resource == garden.BACKUP_ENTRIES and graph.is_backup(write.seed, write.key)
        return write.seed in before.seeds or is_backup
    return authorize(_attributes(write), graph).effect is not Effect.DENY


def _attributes(write: Write) -> Attributes:
    return Attributes(
        user=write.user,
        groups=(keys.SEEDS_GROUP,),
        verb=write.verb,
        namespace=write.key.namespace,
        group=write.resource.group,
        resource=write.resource.plural,
        subresource=write.subresource,
        name=write.key.name,
    )


# --- Seeds that an object names


def _seed_stays(write: Write, graph: Graph) -> Iterator[Objection]:
    """It is given to no other Seed, unless a backup follows its Shoot."""
    if not write.new:
        return
    permitted = {write.seed, *_node(write, write.old).seeds}
    if write.resource == garden.BACKUP_ENTRIES:
        name = write.key.name.removeprefix(SOURCE_PREFIX)
        shoots = graph.shoots_in(write.seed, write.key.namespace)
        permitted |= {seed for shoot in shoots if shoot.backup == name for seed in shoot.seeds}
    for seed in _node(write, write.new).seeds:
        if seed not in permitted:
            yield Objection(f'seed "{write.seed}" may not give the object to seed "{seed}"')


def _node(write: Write, obj: Object) -> Node:
    return KINDS[write.resource].node(obj) if obj else Node(write.key)


# --- what an object uses


def _added(write: Write) -> Iterator[Reference]:
    if write.new:
        before = set(_node(write, write.old).uses)
        yield from (each for each in _node(write, write.new).uses if each not in before)


def _uses_no_more(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    if write.old:
        for each in _added(write):
            yield _not_to_be_used(write, each)


def _not_to_be_used(write: Write, reference: Reference) -> Objection:
    used = f'{reference.resource.plural} "{reference.key}"'
    return Objection(f'seed "{write.seed}" may not make the object use {used}: ask an operator to enter it')


def _buckets(write: Write, graph: Graph) -> Iterator[Objection]:
    """A backup is in the bucket of the Seed; one that is copied is in that of the Shoot's former Seed."""
    for each in _added(write):
        own = graph.get(garden.SEEDS, Key("", write.seed))
        if graph.has(write.seed, each.resource, each.key) or (own is not None and own.uid == each.key.name):
            continue
        is_source = write.key.name.startswith(SOURCE_PREFIX)
        if is_source and _is_bucket_of_entry(write, graph, each):
            continue
        yield _not_to_be_used(write, each)


def _is_bucket_of_entry(write: Write, graph: Graph, bucket: Reference) -> bool:
    entry = graph.get(garden.BACKUP_ENTRIES, Key(write.key.namespace, write.key.name.removeprefix(SOURCE_PREFIX)))
    return entry is not None and bucket in entry.uses


def _credentials_of_bucket(write: Write, graph: Graph) -> Iterator[Objection]:
    """Those that its Seed names, or that were generated for it."""
    own = graph.get(garden.SEEDS, Key("", write.seed))
    generated = Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{write.key.name}"))
    for each in _added(write):
        if each != generated and (own is None or each not in own.uses):
            yield _not_to_be_used(write, each)


def _credentials_of_seed(write: Write, graph: Graph) -> Iterator[Objection]:
    """A gardenlet may register its Seed with credentials in `garden`, but for those of Shoots there.

    Seeds may share credentials. But one that exists does not get those of others: operators decide about that. One that
    is made from a template gets those of the template.
    """
    if write.subresource:
        return
    own_uid = _node(write, write.new).uid
    generated = Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{own_uid}"))
    child = graph.template(write.seed, write.key.name)
    for each in _added(write):
        if each.resource == garden.BACKUP_BUCKETS or each == generated:
            continue
        of_template = child is not None and each in (child.template or ())
        if not (of_template if write.key.name != write.seed else _is_for_own_seed(write, each, graph)):
            yield _not_to_be_used(write, each)


def _is_for_own_seed(write: Write, used: Reference, graph: Graph) -> bool:
    foreign = [
        shoot
        for shoot in shoots_of(used.resource, used.key)
        if graph.get(garden.SHOOTS, shoot) is not None and not graph.has(write.seed, garden.SHOOTS, shoot)
    ]
    is_generated = used.key.name.startswith(GENERATED_PREFIX)
    is_of_others = is_generated or bool(foreign) or (bool(write.old) and graph.others_use(write.seed, used))
    return used.key.namespace in {NAMESPACE, namespace_of(write.seed)} and not is_of_others


# --- gardenlets that it installs


def _child_is_leaving(write: Write, graph: Graph) -> Iterator[Objection]:
    if write.verb != "delete" or write.key.name == write.seed:
        return
    child = graph.get(garden.MANAGED_SEEDS, Key(NAMESPACE, write.key.name))
    if child is None or not child.is_deleting:
        yield Objection("object can only be deleted if corresponding ManagedSeed has a deletion timestamp")


def _bootstrap_token(write: Write, graph: Graph) -> Iterator[Objection]:
    name = write.key.name
    if write.verb == "delete" or write.key.namespace != "kube-system" or not name.startswith(TOKEN_PREFIX):
        return
    data = mapping(write.new.get("data"))
    wanted = (("usage-bootstrap-authentication", "true"), ("usage-bootstrap-signing", "true"))
    for field, value in wanted:
        if _decoded(data.get(field)) != value:
            yield Objection(f'bootstrap token "{name}" must have {field} "true"', 400)
    groups = _decoded(data.get("auth-extra-groups"))
    if groups not in {"", BOOTSTRAP_GROUP}:
        yield Objection(f'bootstrap token "{name}" may have no other extra group than "{BOOTSTRAP_GROUP}"', 400)
    if _decoded(data.get("token-id")) != name.removeprefix(TOKEN_PREFIX):
        yield Objection(f'bootstrap token "{name}" must have the id that is in its name', 400)
    token = name.removeprefix(TOKEN_PREFIX)
    if token == bootstrap_token_id(Key(NAMESPACE, write.seed)):
        return  # the gardenlet that installs itself
    yield from _child_needs_credentials(write, graph, kubernetes.SECRETS)


def _bootstrap_account(write: Write, graph: Graph) -> Iterator[Objection]:
    is_one = write.key.namespace == NAMESPACE and write.key.name.startswith(BOOTSTRAP_ACCOUNT_PREFIX)
    if write.verb == "create" and not write.subresource and is_one:
        yield from _child_needs_credentials(write, graph, kubernetes.SERVICE_ACCOUNTS)


def _bootstrap_binding(write: Write, graph: Graph) -> Iterator[Objection]:
    if write.verb == "delete":
        return
    role = mapping(write.new.get("roleRef"))
    if (role.get("kind"), role.get("name")) != ("ClusterRole", BOOTSTRAP_ROLE):
        yield Objection(f'the role must be ClusterRole "{BOOTSTRAP_ROLE}"')
    for subject in mappings(write.new.get("subjects")):
        account = Key(text(subject.get("namespace")), text(subject.get("name")))
        if subject.get("kind") != "ServiceAccount" or bootstrap_binding(account) != write.key.name:
            yield Objection("the only subject must be the ServiceAccount that the object is named after")
    yield from _child_needs_credentials(write, graph, kubernetes.CLUSTER_ROLE_BINDINGS)


def _child_needs_credentials(write: Write, graph: Graph, resource: Resource) -> Iterator[Objection]:
    """Whoever has them becomes the Seed, so there are none while its gardenlet has a good certificate."""
    child = graph.child(write.seed, resource, write.key)
    if child is None:
        if write.key.name not in {
            bootstrap_account(Key(NAMESPACE, write.seed)).name,
            bootstrap_binding(bootstrap_account(Key(NAMESPACE, write.seed))),
        }:
            yield Objection(f'object does not belong to seed "{write.seed}"')
        return
    seed = graph.get(garden.SEEDS, Key("", child.key.name))
    is_good = seed is not None and (not seed.expires or (time_or_none(seed.expires) or write.now) > write.now)
    if is_good and not child.renews:
        yield Objection(f"managed seed {child.key} is already bootstrapped", 400)


def _decoded(value: object) -> str:
    """What is no text in base64 is a text that nothing equals."""
    try:
        return base64.b64decode(text(value), validate=True).decode()
    except (binascii.Error, ValueError):
        return "\ufffd"


# --- Secrets that it does not own


def _content_stays(write: Write, graph: Graph) -> Iterator[Objection]:
    """Credentials of others get a finalizer, and keep what they say."""
    if write.verb != "update" or write.old.get("data") == write.new.get("data"):
        return
    if not _is_own_secret(write, graph):
        yield Objection("the gardenlet may only change the metadata of credentials that others have made")


def _is_own_secret(write: Write, graph: Graph) -> bool:
    created = replace(write, verb="delete")
    return authorize(_attributes(created), graph).effect is Effect.ALLOW


Rule = Callable[[Write, Graph], Iterator[Objection]]

_RULES: dict[Resource, tuple[Rule, ...]] = {
    garden.BACKUP_BUCKETS: (_seed_stays, _credentials_of_bucket),
    garden.BACKUP_ENTRIES: (_seed_stays, _buckets),
    garden.BASTIONS: (_seed_stays,),
    garden.CONTROLLER_INSTALLATIONS: (_seed_stays, _uses_no_more),
    garden.MANAGED_SEEDS: (_uses_no_more,),
    garden.SEEDS: (_child_is_leaving, _credentials_of_seed),
    garden.SHOOTS: (_seed_stays, _uses_no_more),
    kubernetes.SECRETS: (_bootstrap_token, _content_stays),
    kubernetes.SERVICE_ACCOUNTS: (_bootstrap_account,),
    kubernetes.CLUSTER_ROLE_BINDINGS: (_bootstrap_binding,),
}
