"""What becomes of a CloudProfile before it is stored."""

from collections.abc import Callable
from datetime import datetime

from gardener.garden import profiles
from kube.clock import utc_now
from kube.objects import text
from webhooks.garden.common.extensions import PROVIDER, set_extension_labels
from webhooks.garden.common.write import Write


def drop_expired(write: Write, *, now: Callable[[], datetime] = utc_now) -> None:
    """A new profile does not begin with what nobody may use."""
    if write.is_create:
        profiles.drop_expired(write.spec, now())


def label_provider(write: Write) -> None:
    set_extension_labels(write.new, [PROVIDER + text(write.spec.get("type"))])
