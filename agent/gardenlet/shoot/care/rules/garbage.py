"""Obsolete pods and Leases."""

from collections.abc import Collection
from datetime import datetime, timedelta

from kube.clock import time_or_none
from kube.objects import Object, key, mapping, mappings, metadata, text

_PATIENCE = timedelta(minutes=5)


def is_stale(pod: Object) -> bool:
    """Whether a failed pod is obsolete: it was evicted, or did not fit on its Node."""
    reason = text(mapping(pod.get("status")).get("reason"))
    return "Evicted" in reason or reason.startswith("OutOf") or "NodeAffinity" in reason


def leaving_since(pod: Object) -> datetime | None:
    """Start of a pod's deletion; None if it is not being deleted."""
    return time_or_none(metadata(pod).get("deletionTimestamp"))


def is_overdue(since: datetime | None, *, now: datetime) -> bool:
    """Whether a deletion takes too long, perhaps because the Node of the pod is gone."""
    return since is not None and now - since > _PATIENCE


def is_left(lease: Object, nodes: Collection[str]) -> bool:
    """Whether the Lease of a Node has outlived it."""
    return not mappings(metadata(lease).get("ownerReferences")) and key(lease).name not in nodes
