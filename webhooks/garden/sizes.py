"""Configurable limits of the sizes of objects, for the sake of etcd and of all clients that cache them.

An object that is already larger may be changed as long as it does not grow.
"""

from collections.abc import Collection

from config.webhooks.schema import Garden, Subject
from kube.objects import Object, mapping
from kube.quantities import parse_quantity
from kube.resources import Resource
from webhooks.admission import Answer, Denied, Handler, Request, User
from webhooks.garden.common.write import SERVICE_ACCOUNT_PREFIX
from webhooks.review import dumped
from webhooks.rules.registration import WRITE

_NOT_COUNTED = frozenset({"managedFields"})


def limited(handler: Handler, resource: Resource, settings: Garden) -> Handler:
    """Return a handler that checks the size first, and then calls `handler`."""
    limits = [
        int(parse_quantity(limit.size))
        for limit in settings.size_limits
        if _names(limit.api_groups, resource.group) and _names(limit.resources, resource.plural)
    ]
    if not limits:
        return handler
    most = min(limits)

    async def handle(request: Request) -> Answer:
        if request.operation in WRITE and not request.subresource and not _is_any(request.user, settings):
            size = size_of(request.object)
            if size > most and (request.old_object is None or size > size_of(request.old_object)):
                return Denied(
                    f"maximum resource size exceeded: {size} bytes, at most {most} are allowed for "
                    f"{resource.plural}.{resource.group} - make it smaller, or divide it"
                )
        return await handler(request)

    return handle


def _names(listed: Collection[str], name: str) -> bool:
    return "*" in listed or name in listed


def size_of(obj: object) -> int:
    """Size in bytes of the parts that the author of an object writes."""
    meta = {name: value for name, value in mapping(mapping(obj).get("metadata")).items() if name not in _NOT_COUNTED}
    written: Object = {name: value for name, value in mapping(obj).items() if name != "status"}
    return len(dumped({**written, "metadata": meta}))


def _is_any(user: User, settings: Garden) -> bool:
    return any(_is(user, subject) for subject in settings.unrestricted_subjects)


def _is(user: User, subject: Subject) -> bool:
    match subject.kind:
        case "Group":
            return subject.name in user.groups
        case "ServiceAccount":
            return user.name == f"{SERVICE_ACCOUNT_PREFIX}{subject.namespace}:{subject.name}"
        case _:
            return user.name == subject.name
