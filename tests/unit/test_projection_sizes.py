"""What stores keep of hostile objects is bounded: of all kinds, in all programs, whatever in the object is large.

The views and the object that has all that they read are those of `kit.views`.
"""

import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from kit.hostile import Place, inflated, retained
from kit.views import SAMPLE, read_by, views
from kube.objects import Object
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, Present

_SIZE = 60_000
"""Bytes of JSON: enough to pass all limits, which are the worst to be just below."""
_MOST = 1 << 20
"""Bytes in memory."""
_METADATA: set[Place] = {("metadata", "labels"), ("metadata", "finalizers")}
"""Kept with the whole, if that is kept."""


def samples() -> Iterator[Object]:
    """Of some objects less is kept; these are others."""
    yield SAMPLE
    running = copy.deepcopy(SAMPLE)
    del running["status"]["reason"], running["status"]["certificate"], running["metadata"]["deletionTimestamp"]
    running["status"]["conditions"] = []
    project = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "name": "p", "uid": "u"}
    running["metadata"] |= {"namespace": "seed-x", "ownerReferences": [{**project, "controller": True}]}
    yield running
    of_garden = copy.deepcopy(running)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r", "uid": "u"}
    of_garden["metadata"] |= {"namespace": "garden", "ownerReferences": [{**role, "controller": True}]}
    of_garden["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client"
    of_garden |= {"rules": [{"verbs": ["get"]}], "subjects": [{"kind": "User", "name": "u"}], "roleRef": {"name": "r"}}
    yield of_garden


def places(view: View[Any], sample: Object) -> set[Place]:
    """Of the lists and mappings that are read."""

    def is_large(place: Place) -> bool:
        value: Any = sample
        for step in place:
            value = value[step]
        return isinstance(value, list | dict)

    return {place for place in read_by(view, sample) if place and is_large(place)}


def kept(view: View[Any], body: bytes) -> int:
    store = Store(view)
    source = store.source("")
    source.apply(ListBegins(0))
    source.apply(Present(orjson.loads(body)))
    return sum(map(retained, (store._objects, store._indexes)))


@pytest.mark.parametrize("view", [pytest.param(view, id=name) for name, view in views() if view.packs])
def test_what_is_kept_of_a_hostile_object_is_bounded(view: View[Any]) -> None:
    tried = set[Place]()
    also = _METADATA
    for sample in samples():
        found = places(view, sample) - tried
        for what, obj in inflated(sample, found | also, size=_SIZE):
            assert kept(view, orjson.dumps(obj)) < _MOST, what
        tried, also = tried | found, set()
