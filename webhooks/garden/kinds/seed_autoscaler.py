"""SeedAutoscalers: number of replicas of a ManagedSeedSet."""

from collections.abc import Iterator

from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from gardener.api.garden.seed_autoscaler import SEED_AUTOSCALER as DEFINITION
from gardener.garden import users
from kube.objects import Key, is_deleting, key, mappings, text
from kube.paths import at
from kube.quantities import parse_quantity
from kube.validation import duplicate, invalid
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.metadata import in_garden
from webhooks.garden.common.write import Write


def metric_errors(write: Write) -> Iterator[Finding]:
    """Each resource has one target, and a positive amount for computing replicas."""
    seen: set[str] = set()
    for index, metric in enumerate(mappings(write.spec.get("metrics"))):
        path = f"spec.metrics[{index}].resource"
        name, amount = text(at(metric, "resource", "name")), at(metric, "resource", "target", "averageValue")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        if amount is not None and not _is_positive(amount):
            yield invalid(f"{path}.target.averageValue", amount, "must be greater than 0")


def _is_positive(amount: str | int) -> bool:
    try:
        return parse_quantity(amount) > 0
    except ValueError:
        return False


def target_errors(write: Write) -> Iterator[Finding]:
    """No other SeedAutoscaler scales the same set: they would undo each other's work for ever."""
    target = text(at(write.spec, "scaleTargetRef", "name"))
    for other in write.garden.by(SEED_AUTOSCALERS, users.managed_seed_sets, Key(write.namespace, target)):
        name = key(other).name
        if name != write.name and not is_deleting(other):
            detail = f"{MANAGED_SEED_SETS.kind} {target} is already scaled by {SEED_AUTOSCALERS.kind} {name}"
            yield invalid("spec.scaleTargetRef", target, detail)


SEED_AUTOSCALER = Kind(
    definition=DEFINITION,
    checks=(in_garden, metric_errors),
    references=(target_errors,),
    reads=(SEED_AUTOSCALERS,),
)
