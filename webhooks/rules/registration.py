"""What an entry of a webhook configuration says, and for whose webhooks."""

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
    """A label selector; the empty one selects everything."""

    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Key, operator, values."""

    def __and__(self, other: "Selector") -> "Selector":
        expressions = tuple(dict.fromkeys((*self.expressions, *other.expressions)))
        return Selector((*self.labels, *other.labels), expressions)

    def __sub__(self, other: "Selector") -> "Selector":
        """What it demands and the other does not."""
        return Selector(
            tuple(label for label in self.labels if label not in other.labels),
            tuple(expression for expression in self.expressions if expression not in other.expressions),
        )

    def shared(self, other: "Selector") -> "Selector":
        """What both demand."""
        return self - (self - other)

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return all(matches_expression(labels, *expression) for expression in self.expressions)

    def json(self) -> Object:
        """As metav1.LabelSelector."""
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
    """Whose webhooks these are; several instances in a cluster differ in mode or prefix."""

    mode: Mode
    prefix: str = ""

    @property
    def app(self) -> str:
        """The value of the label `app` of everything that belongs to it."""
        return f"{self.prefix}{COMPONENT}"

    def namespaces(self) -> Selector:
        """The namespaces that most of its webhooks look after."""
        if self.mode is Mode.TARGET:
            return where("kubernetes.io/metadata.name", "In", *_SYSTEM_NAMESPACES)
        return where(keys.ROLE, "Exists") & where("kubernetes.io/metadata.name", "NotIn", *_SYSTEM_NAMESPACES)

    def managed(self) -> Selector:
        """A target instance leaves alone what was not deployed by Gardener."""
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
    """How API servers ask a webhook."""

    rules: tuple[Rule, ...]
    failure_policy: str = "Fail"
    match_policy: str = "Exact"
    timeout_seconds: int = 10
    reinvocation_policy: str = ""
    """Empty: the default of the API server, which is `Never`."""
    only_for_group: str = ""
    """Whose users' requests it is asked about; empty: all."""
    condition: str = ""
    """In CEL: the requests that it is asked about; empty: all."""

    @property
    def is_for_pods(self) -> bool:
        return PODS in self.rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Call):
    name: str
    """Without the domain that all names end in."""
    webhook: str
    """Which of our webhooks it is: the name in logs."""
    path: str
    namespaces: Selector = EVERYTHING
    objects: Selector = EVERYTHING
