"""Rights to credentials of Seeds: a user who makes a Seed refer to credentials must be allowed to read these.

Gardenlets are exempt: the webhook `seed-restriction.garden` decides about theirs.
"""

from collections.abc import Callable, Iterator

from gardener import keys
from gardener.garden.seed_graph import Node
from kube.objects import Object
from webhooks.garden.common.write import Right, Rights, Write


def reading_rights(node: Callable[[Object], Node], path: str) -> Rights:
    """Return the rights that new references need; `path` is that of the Seed's spec."""

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
