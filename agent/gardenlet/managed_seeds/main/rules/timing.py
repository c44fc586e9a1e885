"""Delay of a ManagedSeed's reconciliation: none if it is new, deleted or requested; else spread over a period."""

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
    """Whether no reconciliation has completed yet: an unchanged object keeps its first generation."""
    return at(managed_seed, "status", "observedGeneration") is None


def is_renewing(managed_seed: Object) -> bool:
    """Whether a renewal of the gardenlet's kubeconfig is requested."""
    return annotations(managed_seed).get(keys.OPERATION) == keys.OPERATION_RENEW_KUBECONFIG


def is_asked(old: Object, new: Object) -> bool:
    """Whether a user has requested a reconciliation, regardless of the spec."""
    operation = annotations(new).get(keys.OPERATION, "")
    is_new = bool(operation) and operation != annotations(old).get(keys.OPERATION)
    return is_new or at(new, *_SEQUENCE) != at(old, *_SEQUENCE)


@dataclass(frozen=True, slots=True)
class Timing:
    settings: Settings
    uniform: Uniform = random.uniform

    def found(self, managed_seed: Object) -> float:
        """Delay in seconds for an object that was just listed or created."""
        if _is_urgent(managed_seed):
            return 0.0
        if is_pending(managed_seed):
            return self._of_update()
        return self.uniform(0.0, self.settings.sync_jitter_period)

    def changed(self, old: Object, new: Object) -> float | None:
        """Delay in seconds after a change; None if no reconciliation is needed."""
        requested = is_asked(old, new)
        if not (
            requested
            or (is_pending(new) and generation(new) != generation(old))
            or is_deleting(new) != is_deleting(old)
        ):
            return None
        return 0.0 if requested or _is_urgent(new) else self._of_update()

    def _of_update(self) -> float:
        return self.uniform(0.0, self.settings.sync_jitter_period) if self.settings.jitter_updates else 0.0


def _is_urgent(managed_seed: Object) -> bool:
    return is_deleting(managed_seed) or is_new(managed_seed) or is_renewing(managed_seed)
