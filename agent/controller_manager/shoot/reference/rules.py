"""When a Shoot is looked at for the sake of what it refers to."""

from gardener import keys
from gardener.garden.shoots import is_abandoned, references
from kube.objects import Object, finalizers


def concerns(shoot: Object) -> tuple[object, ...]:
    """What has to change for a Shoot to be looked at again."""
    return frozenset(references(shoot)), is_abandoned(shoot), keys.REFERENCE_PROTECTION in finalizers(shoot)
