"""Fields of the spec of a SeedAutoscaler."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from agent.controller_manager.seed_autoscaler.rules.loads import amount_of
from gardener.api.garden.seed_autoscaler import SEED_AUTOSCALER
from gardener.api.structural import with_defaults
from kube.objects import Object, integer, mapping, mappings, spec, text
from kube.paths import at, mapping_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Target for a resource: one of the two.

    Attributes:
        utilization: share of the allocatable amount, such as 1/2.
        average: amount for each Seed.
    """

    resource: str
    utilization: Fraction | None = None
    average: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    window: timedelta
    max_step: int
    cooldown: timedelta
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    min_replicas: int
    max_replicas: int
    metrics: Sequence[Metric]
    min_free_shoots: int
    scale_out: Direction
    scale_in: Direction
    tolerance: Fraction

    @classmethod
    def of(cls, autoscaler: Object) -> "Settings":
        """Settings of the spec, including one that was stored before a field had its default."""
        reported = spec(mapping(with_defaults(SEED_AUTOSCALER.schema, autoscaler)))
        behavior = mapping(reported.get("behavior"))
        return cls(
            min_replicas=max(integer(reported.get("minReplicas")), 1),
            max_replicas=integer(reported.get("maxReplicas")),
            metrics=tuple(map(_metric, mappings(reported.get("metrics")))),
            min_free_shoots=integer(reported.get("minFreeShoots")),
            scale_out=_direction(mapping(behavior.get("scaleOut"))),
            scale_in=_direction(mapping(behavior.get("scaleIn"))),
            tolerance=Fraction(integer(behavior.get("tolerancePercent")), 100),
        )

    @property
    def resources(self) -> frozenset[str]:
        """Resources of the metrics."""
        return frozenset(metric.resource for metric in self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Shoots without a Seed that count."""

    included: bool
    grace: timedelta

    @classmethod
    def of(cls, autoscaler: Object) -> "Waiting":
        reported = spec(mapping(with_defaults(SEED_AUTOSCALER.schema, autoscaler)))
        seconds = integer(at(reported, "behavior", "pendingShootGracePeriodSeconds"))
        return cls(included=reported.get("includePendingShoots") is not False, grace=timedelta(seconds=seconds))


def _metric(metric: Object) -> Metric:
    target = mapping_at(metric, "resource", "target")
    percent = target.get("averageUtilization")
    return Metric(
        resource=text(at(metric, "resource", "name")),
        utilization=Fraction(integer(percent), 100) if percent is not None else None,
        average=amount_of(target.get("averageValue")),
    )


def _direction(reported: Object) -> Direction:
    return Direction(
        window=timedelta(seconds=integer(reported.get("stabilizationWindowSeconds"))),
        max_step=max(integer(reported.get("maxStep")), 1),
        cooldown=timedelta(seconds=integer(reported.get("cooldownSeconds"))),
        disabled=reported.get("disabled") is True,
    )
