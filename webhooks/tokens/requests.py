"""Common parts of everything that is issued: requests and refusals."""

from collections.abc import Mapping

from kube.objects import Key, Object
from kube.resources import Resource
from webhooks.admission import User
from webhooks.garden.access import Access
from webhooks.garden.common.write import Right


class Refused(Exception):
    """A refusal that the client gets as a Status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def demand_type(body: Object, expected: Mapping[str, str]) -> None:
    """Check the type of a body; an empty one is of any type.

    Raises:
        Refused: it has another type.
    """
    if any((body.get(field) or value) != value for field, value in expected.items()):
        raise Refused(400, "BadRequest", f"the body must be a {expected['kind']} of {expected['apiVersion']}")


async def demand_right(access: Access, user: User, resource: Resource, subresource: str, where: Key) -> None:
    """Check that a user may create the subresource.

    Raises:
        Refused: the user lacks the right.
    """
    what = f'{resource.plural}/{subresource} of "{where}" in API group "{resource.group}"'
    right = Right(
        verb="create",
        resource=resource,
        namespace=where.namespace,
        name=where.name,
        subresource=subresource,
        denial=f'user "{user.name}" cannot create {what}',
    )
    if not await access.allows(user, right):
        raise Refused(403, "Forbidden", right.denial)
