"""What becomes of a NamespacedCloudProfile before it is stored."""

from collections.abc import Callable
from datetime import UTC, datetime

from gardener.garden import profiles
from kube.objects import mappings
from webhooks.garden.common.write import Write


def drop_expired(write: Write, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """A new profile does not begin with what nobody may use."""
    if not write.is_create:
        return
    profiles.drop_expired(write.spec, now())
    if images := mappings(write.spec.get("machineImages")):
        write.spec["machineImages"] = [image for image in images if image.get("versions")]
