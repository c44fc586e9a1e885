"""Gardenlets that a gardenlet installs by ManagedSeeds: their Seeds and the credentials with which they begin."""

import base64
import binascii
from collections.abc import Iterator
from datetime import timedelta

from gardener import keys
from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import TOKEN_PREFIX, Graph
from gardener.garden.seeds import (
    BOOTSTRAP_ROLE,
    BootstrapToken,
    bootstrap_account,
    bootstrap_binding,
    namespace_of,
)
from kube import resources as kubernetes
from kube.clock import time_or_none
from kube.objects import Key, mapping, mappings, text
from kube.paths import at
from kube.resources import Resource
from webhooks.authorizers.seed.rules.common import Objection, Write, node_of, uses_no_more

_LONGEST_TOKEN = timedelta(hours=25)
"""Maximum lifetime of bootstrap tokens; gardenlets create them for a day, and clocks differ."""
_LONGEST_ACCOUNT_TOKEN = 3600
_ACCOUNT_TOKEN, _BOOTSTRAP_TOKEN = "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"


def managed_seed_stays(write: Write, graph: Graph) -> Iterator[Objection]:
    """Refuse another Shoot, additional references, and requests for new credentials."""
    before, now = node_of(write, write.old), node_of(write, write.new)
    if not write.old or not write.new:
        return
    if now.shoot != before.shoot:
        yield Objection(f'seed "{write.seed}" may not give the object another Shoot')
    if now.renews and not before.renews:
        operation = keys.OPERATION_RENEW_KUBECONFIG
        yield Objection(f'seed "{write.seed}" may not request {operation}; have an operator annotate the object')
    yield from uses_no_more(write, graph)


def child_is_leaving(write: Write, graph: Graph) -> Iterator[Objection]:
    if write.verb != "delete" or write.key.name == write.seed:
        return
    child = graph.get(garden.MANAGED_SEEDS, Key(NAMESPACE, write.key.name))
    if child is None or not child.is_deleting:
        yield Objection("object can only be deleted if corresponding ManagedSeed has a deletion timestamp")


def token(write: Write, graph: Graph) -> Iterator[Objection]:
    name = write.key.name
    if write.verb == "delete" or write.key.namespace != "kube-system" or not name.startswith(TOKEN_PREFIX):
        return
    if write.new.get("type") != _BOOTSTRAP_TOKEN:
        yield Objection(f'bootstrap token "{name}" must have the type "{_BOOTSTRAP_TOKEN}"', 400)
    data = mapping(write.new.get("data"))
    wanted = (("usage-bootstrap-authentication", "true"), ("usage-bootstrap-signing", "true"))
    for field, value in wanted:
        if _decoded(data.get(field)) != value:
            yield Objection(f'bootstrap token "{name}" must have {field} "true"', 400)
    if _decoded(data.get("token-id")) != name.removeprefix(TOKEN_PREFIX):
        yield Objection(f'bootstrap token "{name}" must have the id that is in its name', 400)
    expires = time_or_none(_decoded(data.get("expiration")))
    if expires is None or expires > write.now + _LONGEST_TOKEN:
        yield Objection(f'bootstrap token "{name}" must have an expiration within {_LONGEST_TOKEN}', 400)
    yield from _is_for_one_seed(write, graph)


def _is_for_one_seed(write: Write, graph: Graph) -> Iterator[Objection]:
    """Check the groups of a token, which the API server puts into certificate requests; the id is a truncated hash."""
    child = graph.child(write.seed, kubernetes.SECRETS, write.key)
    wanted = BootstrapToken(write.seed if child is None else child.key.name, write.seed).extra_groups
    for obj in filter(None, (write.old, write.new)):
        if _decoded(mapping(obj.get("data")).get("auth-extra-groups")) != wanted:
            text_of = "has" if obj is write.old else "must have"
            yield Objection(
                f'bootstrap token "{write.key.name}" {text_of} other auth-extra-groups than "{wanted}"', 400
            )
    if child is not None:
        yield from _child_needs_credentials(write, graph, kubernetes.SECRETS)


def account(write: Write, graph: Graph) -> Iterator[Objection]:
    """Check ServiceAccounts outside the Seed's namespace: after the certificate request, they may only be deleted."""
    if write.verb != "create" or write.key.namespace == namespace_of(write.seed):
        return
    if write.subresource and not _is_short(at(write.new, "spec", "expirationSeconds")):
        yield Objection(f"spec.expirationSeconds must be at most {_LONGEST_ACCOUNT_TOKEN}", 400)
    yield from _child_needs_credentials(write, graph, kubernetes.SERVICE_ACCOUNTS)


def _is_short(seconds: object) -> bool:
    return isinstance(seconds, int) and seconds <= _LONGEST_ACCOUNT_TOKEN


def binding(write: Write, graph: Graph) -> Iterator[Objection]:
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
    """Refuse credentials while the child's gardenlet has a valid certificate: their holder becomes the Seed."""
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
    """The text; U+FFFD, which equals no expected value, if it is not valid base64."""
    try:
        return base64.b64decode(text(value), validate=True).decode()
    except (binascii.Error, ValueError):
        return "\ufffd"


def no_account_token(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    """Refuse Secrets that Kubernetes fills with the token of any ServiceAccount of the namespace."""
    is_one = write.new.get("type") == _ACCOUNT_TOKEN
    if write.verb == "create" and is_one and write.key.namespace != namespace_of(write.seed):
        yield Objection(f'Secrets of the type "{_ACCOUNT_TOKEN}" are refused; request the token of the ServiceAccount')
