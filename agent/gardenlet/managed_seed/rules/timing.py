"""When a ManagedSeed is looked at: at once if it is new, goes, or is asked for something; else spread over a time."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from config.gardenlet.controllers import ManagedSeed as Settings
from gardener import keys
from gardener.operations import generation
from kube.objects import Object, annotations, integer, is_deleting
from kube.paths import at

Uniform = Callable[[float, float], float]
_SEQUENCE = ("operation", "sequence")


def is_pending(managed_seed: Object) -> bool:
    return integer(at(managed_seed, "status", "observedGeneration")) != generation(managed_seed)


def is_new(managed_seed: Object) -> bool:
    """Whether no pass over it has ended yet: one that is never changed keeps its first generation."""
    return at(managed_seed, "status", "observedGeneration") is None


def is_renewing(managed_seed: Object) -> bool:
    """Whether the kubeconfig of its gardenlet is to be made anew."""
    return annotations(managed_seed).get(keys.OPERATION) == keys.OPERATION_RENEW_KUBECONFIG


def is_asked(old: Object, new: Object) -> bool:
    """Whether a person has asked for a reconciliation, whatever the spec says."""
    operation = annotations(new).get(keys.OPERATION, "")
    is_new = bool(operation) and operation != annotations(old).get(keys.OPERATION)
    return is_new or at(new, *_SEQUENCE) != at(old, *_SEQUENCE)


@dataclass(frozen=True, slots=True)
class Timing:
    settings: Settings
    uniform: Uniform = random.uniform

    def found(self, managed_seed: Object) -> float:
        """Seconds until one is looked at that has just been found."""
        if _is_urgent(managed_seed):
            return 0.0
        if is_pending(managed_seed):
            return self._of_update()
        return self.uniform(0.0, self.settings.sync_jitter_period)

    def changed(self, old: Object, new: Object) -> float | None:
        """The same after a change; None: it is nothing to look at."""
        asked = is_asked(old, new)
        if not (
            asked or (is_pending(new) and generation(new) != generation(old)) or is_deleting(new) != is_deleting(old)
        ):
            return None
        return 0.0 if asked or _is_urgent(new) else self._of_update()

    def _of_update(self) -> float:
        return self.uniform(0.0, self.settings.sync_jitter_period) if self.settings.jitter_updates else 0.0


def _is_urgent(managed_seed: Object) -> bool:
    return is_deleting(managed_seed) or is_new(managed_seed) or is_renewing(managed_seed)
