"""NetworkPolicies that a gardenlet creates in namespaces of its seed: their names, and the namespaces that get them.

They deny all traffic of pods except what these request by labels. The controller computes the rules of each.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gardener import keys
from kube.objects import matches_label_selector

GARDEN_NAMESPACE = "garden"
SHOOT_NAMESPACE_PREFIX = "shoot-"

DENY_ALL = "deny-all"
TO_RUNTIME_APISERVER = "allow-to-runtime-apiserver"
TO_PUBLIC_NETWORKS = "allow-to-public-networks"
TO_PRIVATE_NETWORKS = "allow-to-private-networks"
TO_BLOCKED_CIDRS = "allow-to-blocked-cidrs"
TO_DNS = "allow-to-dns"
NAMES = (DENY_ALL, TO_RUNTIME_APISERVER, TO_PUBLIC_NETWORKS, TO_PRIVATE_NETWORKS, TO_BLOCKED_CIDRS, TO_DNS)
"""Names of all policies, in the order in which they are written."""

_OF_ISTIO = frozenset({DENY_ALL, TO_RUNTIME_APISERVER, TO_DNS})
_OF_EXPOSURE_CLASS_HANDLERS = frozenset({DENY_ALL, TO_DNS})
_WITH_ALL = frozenset({keys.ROLE_SHOOT, keys.ROLE_EXTENSION})
_ISTIO = frozenset({keys.ROLE_ISTIO_SYSTEM, keys.ROLE_ISTIO_INGRESS})

Selector = Mapping[str, Any]
"""A metav1.LabelSelector."""


def names_of(namespace: str, labels: Mapping[str, str], *, additional: Sequence[Selector]) -> tuple[str, ...]:
    """Names of the policies that a namespace gets. Args: additional: selectors of namespaces that get all of them."""
    found = set().union(*_names_of(namespace, labels, additional))
    return tuple(name for name in NAMES if name in found)


def _names_of(namespace: str, labels: Mapping[str, str], additional: Sequence[Selector]) -> Iterator[frozenset[str]]:
    role = labels.get(keys.ROLE)
    if namespace == GARDEN_NAMESPACE or role in _WITH_ALL or is_selected(labels, additional):
        yield frozenset(NAMES)
    if role in _ISTIO:
        yield _OF_ISTIO
    if keys.EXPOSURE_CLASS_HANDLER in labels:
        yield _OF_EXPOSURE_CLASS_HANDLERS


def is_selected(labels: Mapping[str, str], selectors: Sequence[Selector]) -> bool:
    """Whether one of the selectors selects these labels."""
    return any(matches_label_selector(selector, labels) for selector in selectors)
