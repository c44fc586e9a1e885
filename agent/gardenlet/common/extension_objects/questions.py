"""Decision to send a request, and the object to write: pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from agent.gardenlet.common.extension_objects.kinds import Kind
from gardener import keys
from kube.objects import Object, annotations, key, labels, metadata, spec
from kube.runtime.controller import ReconcileError

MOST_BYTES = 1 << 20
"""Maximum size of an object; etcd accepts little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to an extension.

    Attributes:
        kind: the kind of the object.
        manifest: its name, labels, annotations, and spec.
        operation: the requested operation.
        is_demanded: whether to send the request even if there is a response.
        data_changed: time of the last change of data to which the spec refers, such as a Secret; empty if none.
    """

    kind: Kind
    manifest: Object
    operation: str = keys.OPERATION_RECONCILE
    is_demanded: bool = False
    data_changed: str = ""

    def differs(self, live: Object) -> bool:
        """Whether the object lacks something that the request contains."""
        return (
            spec(live) != spec(self.manifest)
            or not labels(self.manifest).items() <= labels(live).items()
            or not annotations(self.manifest).items() <= annotations(live).items()
        )

    def is_open(self, live: Object) -> bool:
        """Whether to send the request, since the object has no response to it."""
        return self.is_demanded or self.kind.needs_request(
            live, spec_changed=self.differs(live), operation=self.operation, data_changed=self.data_changed
        )

    def body(self, live: Object | None, requested: Mapping[str, str]) -> Object:
        """Object to write, with the annotations of the request.

        Raises:
            ReconcileError: it is too large.
        """
        meta = {**metadata(self.manifest), "annotations": {**annotations(self.manifest), **requested}}
        if live is None:
            return bounded({**self.kind.resource.type_meta, **self.manifest, "metadata": meta})
        kept = {
            **metadata(live),
            "labels": {**labels(live), **labels(self.manifest)},
            "annotations": {**annotations(live), **meta["annotations"]},
        }
        return bounded({**live, "metadata": kept, "spec": spec(self.manifest)})


def bounded(obj: Object) -> Object:
    """Return the object itself.

    Raises:
        ReconcileError: it is too large to be stored.
    """
    size = len(orjson.dumps(obj))
    if size <= MOST_BYTES:
        return obj
    raise ReconcileError(
        f"{obj['kind']} {key(obj)} has {size} bytes, more than the limit of {MOST_BYTES}; reduce its spec or its state"
    )
