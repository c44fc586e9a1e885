"""Who may choose the Seed of a Shoot: whoever may update the subresource `shoots/binding`, which no server serves."""

from collections.abc import Iterator

from gardener.api.garden import SHOOTS
from webhooks.garden.common.write import Right, Write


def binding_right(write: Write) -> Iterator[Right]:
    """For `rights` of Shoots."""
    if write.spec.get("seedName") != write.old_spec.get("seedName"):
        yield Right(
            verb="update",
            resource=SHOOTS,
            subresource="binding",
            namespace=write.namespace,
            name=write.name,
            denial=f'user "{write.user.name}" is not allowed to set .spec.seedName for "{SHOOTS.plural}"',
        )
