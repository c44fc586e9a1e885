"""Statuses that are computed, but not written."""

from kube.objects import Object, mapping
from kube.runtime.status import Compute, StatusWriter


class NoStatuses(StatusWriter):
    def __init__(self) -> None:
        """Skip the initialization of the writer, which is not used."""

    async def write(self, obj: Object, fields: Object) -> Object:
        return {**obj, "status": {**mapping(obj.get("status")), **fields}}

    async def update(self, obj: Object, compute: Compute) -> Object:
        return {**obj, "status": compute(mapping(obj.get("status")))}
