"""Requests of an API server about objects of a resource."""

from typing import Any

from kube.resources import Resource
from webhooks.admission import Kind, Request, ResourceName


def request_about(resource: Resource, obj: Any, old: Any = None, *, operation: str = "", **fields: Any) -> Request:
    """Args: operation: CREATE, or UPDATE of the old object, unless it is given."""
    return Request(
        uid="u",
        kind=Kind(resource.group, resource.version, resource.kind),
        resource=ResourceName(resource.group, resource.version, resource.plural),
        operation=operation or ("CREATE" if old is None else "UPDATE"),
        object=obj,
        old_object=old,
        **fields,
    )
