"""What Seeds get to read: whoever makes one refer to credentials has to be allowed to read these himself.

Gardenlets are not: for theirs the webhook `seed-restriction.garden` decides.
"""

from collections.abc import Callable, Iterator

from gardener import keys
from gardener.garden.seed_graph import Node
from kube.objects import Object
from webhooks.garden.common.write import Right, Rights, Write


def reading_rights(node: Callable[[Object], Node], path: str) -> Rights:
    """Args: path: of the spec of the Seed."""

    def rights(write: Write) -> Iterator[Right]:
        if keys.SEEDS_GROUP in write.user.groups or not (write.is_create or write.spec_is_changed):
            return
        before = node(write.old).named if write.old else ()
        for used in node(write.new).named:
            if used not in before:
                yield Right(
                    verb="get",
                    resource=used.resource,
                    name=used.key.name,
                    namespace=used.key.namespace,
                    denial=f"cannot reference {used.resource.kind} {used.key}, which you are not allowed to read",
                    path=path,
                )

    return rights
