"""Entries of a webhook configuration, and the instance that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from config import resource_manager
from gardener import keys
from kube.objects import Object, matches_expression

COMPONENT = resource_manager.COMPONENT.name

_SYSTEM_NAMESPACES = ("kube-system", "kubernetes-dashboard")


class Mode(Enum):
    RUNTIME = "runtime"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Selector:
    """Label selector; the empty one selects everything."""

    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Key, operator, values."""

    def __and__(self, other: "Selector") -> "Selector":
        expressions = tuple(dict.fromkeys((*self.expressions, *other.expressions)))
        return Selector((*self.labels, *other.labels), expressions)

    def __sub__(self, other: "Selector") -> "Selector":
        """Requirements of this selector that the other one lacks."""
        return Selector(
            tuple(label for label in self.labels if label not in other.labels),
            tuple(expression for expression in self.expressions if expression not in other.expressions),
        )

    def shared(self, other: "Selector") -> "Selector":
        """Requirements that both have."""
        return self - (self - other)

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return all(matches_expression(labels, *expression) for expression in self.expressions)

    def json(self) -> Object:
        """Format as metav1.LabelSelector."""
        selector: Object = {}
        if self.labels:
            selector["matchLabels"] = dict(self.labels)
        if self.expressions:
            selector["matchExpressions"] = [
                {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
                for key, operator, values in self.expressions
            ]
        return selector


EVERYTHING = Selector()


def having(key: str, value: str) -> Selector:
    return Selector(labels=((key, value),))


def where(key: str, operator: str, *values: str) -> Selector:
    return Selector(expressions=((key, operator, values),))


def without(key: str) -> Selector:
    return where(key, "DoesNotExist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Owner of webhooks; several instances in a cluster differ in mode or prefix."""

    mode: Mode
    prefix: str = ""

    @property
    def app(self) -> str:
        """Value of the label `app` of all its objects."""
        return f"{self.prefix}{COMPONENT}"

    def namespaces(self) -> Selector:
        """Namespaces that most of its webhooks handle."""
        if self.mode is Mode.TARGET:
            return where("kubernetes.io/metadata.name", "In", *_SYSTEM_NAMESPACES)
        return where(keys.ROLE, "Exists") & where("kubernetes.io/metadata.name", "NotIn", *_SYSTEM_NAMESPACES)

    def managed(self) -> Selector:
        """Select objects deployed by Gardener in a target instance, which leaves others alone."""
        return having(keys.MANAGED_BY, "gardener") if self.mode is Mode.TARGET else EVERYTHING

    def not_ours(self) -> Selector:
        return where("app", "NotIn", self.app)


@dataclass(frozen=True, slots=True)
class Rule:
    operations: tuple[str, ...]
    group: str
    versions: tuple[str, ...]
    resources: tuple[str, ...]

    def json(self) -> Object:
        return {
            "operations": list(self.operations),
            "apiGroups": [self.group],
            "apiVersions": list(self.versions),
            "resources": list(self.resources),
        }


WRITE = ("CREATE", "UPDATE")
PODS = Rule(("CREATE",), "", ("v1",), ("pods",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Calls of a webhook by API servers."""

    rules: tuple[Rule, ...]
    failure_policy: str = "Fail"
    match_policy: str = "Exact"
    timeout_seconds: int = 10
    reinvocation_policy: str = ""
    """Empty for the default of the API server, `Never`."""
    only_for_group: str = ""
    """Group whose users' requests it receives; empty for all."""
    condition: str = ""
    """CEL expression for the requests that it receives; empty for all."""

    @property
    def is_for_pods(self) -> bool:
        return PODS in self.rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Call):
    name: str
    """Name without the common domain."""
    webhook: str
    """Name of the webhook in logs."""
    path: str
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
