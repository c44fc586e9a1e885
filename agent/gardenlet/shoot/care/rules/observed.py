"""Observations of one check of a Shoot, shared by all conditions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from agent.gardenlet.shoot.care.rules.nodes import NO_MACHINES, Machines, NodeProblem
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.error_codes import codes_in
from gardener.extension_contract import observed_generation
from gardener.health.checks import deployment, stateful_set
from gardener.health.checks.rule import CheckError, outdated_generation
from kube.objects import Key, Object, annotations, integer, is_deleting, key, labels, mapping, spec, text
from kube.resources import DEPLOYMENTS, STATEFUL_SETS

CONTROL_PLANE, MONITORING = "controlplane", "monitoring"
"""Values of the label `gardener.cloud/role`."""
_LONGEST_PROBLEM = 1000
"""Maximum length in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A Deployment, StatefulSet or Etcd of a control plane.

    Attributes:
        role: value of its role label.
        replicas, running: desired replicas, and those in its status.
        problem: why it is unhealthy; empty if it is healthy.
        codes: error codes.
        is_meltdown: whether the dependency-watchdog has scaled it down.
    """

    kind: str
    name: Key
    role: str
    replicas: int
    is_deleting: bool
    problem: str
    running: int = 0
    codes: tuple[str, ...] = ()
    is_meltdown: bool = False


def _projection(kind: str, problem_of: Callable[[Object], str | None]) -> Callable[[Object], Part]:
    """Return a projection that reduces objects of a kind to a `Part`."""

    def project(obj: Object) -> Part:
        status = mapping(obj.get("status"))
        return Part(
            kind=kind,
            name=key(obj),
            role=labels(obj).get(keys.ROLE, ""),
            replicas=integer(spec(obj).get("replicas", 1)),
            is_deleting=is_deleting(obj),
            problem=_checked(problem_of, obj)[:_LONGEST_PROBLEM],
            running=integer(status.get("replicas")),
            codes=tuple(codes_in(text(status.get("lastError")))),
            is_meltdown=keys.MELTDOWN_PROTECTION in annotations(obj),
        )

    return project


def _checked(problem_of: Callable[[Object], str | None], obj: Object) -> str:
    try:
        return problem_of(obj) or ""
    except CheckError as error:
        return str(error)


def _of_etcd(etcd: Object) -> str:
    status, name = mapping(etcd.get("status")), key(etcd).name
    if is_deleting(etcd):
        return "it is being deleted"
    if outdated := outdated_generation(etcd, observed_generation(etcd)):
        return outdated
    if operation := annotations(etcd).get(keys.OPERATION):
        return f'gardener operation "{operation}" is not yet picked up by etcd-druid'
    if status.get("ready") is True:
        return ""
    reported = text(status.get("lastError"))
    return f'etcd "{name}" is not ready yet' + (f" ({reported})" if reported else "")


of_deployment = _projection(DEPLOYMENTS.kind, deployment.health)
of_stateful_set = _projection(STATEFUL_SETS.kind, stateful_set.health)
of_etcd = _projection(ETCDS.kind, _of_etcd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report of an extension about a Shoot.

    Attributes:
        conditions: as in the status of the extension object.
    """

    kind: str
    name: Key
    type: str
    conditions: Sequence[Object]

    def condition(self, of_type: str) -> Object | None:
        return next((each for each in self.conditions if each.get("type") == of_type), None)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat of an extension. Attributes: renewed: time of the last one; None if there was none."""

    renewed: datetime | None


class ApiServer(Enum):
    NOT_RUNNING = "not running"
    UNREACHABLE = "unreachable"
    """A connection could not be configured."""
    NO_ANSWER = "no answer"
    UNHEALTHY = "unhealthy"
    HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class Probe:
    """Result of probing the Shoot's API server. Attributes: message: the failure."""

    api_server: ApiServer
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFinding:
    """A webhook configuration that may keep the Shoot from working, or was corrected."""

    kind: str
    name: str
    problem: str
    is_remediated: bool
    note: str = ""
    """Reason why it is not corrected."""
    is_announced: bool = False
    """Whether a correction is due and users were informed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Objects listed in the Shoot, possibly some periods ago.

    Attributes:
        problem: why they could not be listed; empty if they were.
        users_of_old: users of the old certificate authority; None unless users have to exchange it now.
        converted: CustomResourceDefinitions with several stored versions and a conversion webhook.
        nodes: reduced to the checked fields; None for a Shoot without workers.
        nodes_problem: problem of their configurations and agents, as of the listing.
        leases_problem: problem of their own Leases, as of the listing.
        tunnel_problem: why the API server does not reach the Nodes; None if it does.
    """

    problem: str = ""
    users_of_old: Sequence[str] | None = None
    webhooks: Sequence[WebhookFinding] = ()
    converted: Sequence[str] = ()
    nodes: Sequence[Object] | None = None
    nodes_problem: NodeProblem | None = None
    leases_problem: NodeProblem | None = None
    tunnel_problem: NodeProblem | None = None

    @property
    def is_due(self) -> bool:
        """Whether the next check lists again: the last attempt failed, or a correction is due."""
        return bool(self.problem) or any(each.is_announced for each in self.webhooks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Attributes:
    shoot: as in the garden.
    rolled_out: as in the Cluster object in the seed, which extensions read.
    heartbeats: of the extension of an object, by kind and type; no entry if unknown.
    authorities: end of validity by name of the authority; None if it is unreadable.
    inside: None if nothing was listed yet.
    machines: of its worker pools.
    """

    shoot: Object
    rolled_out: Object
    parts: Sequence[Part]
    managed_resources: Sequence[Object]
    reports: Sequence[Report]
    heartbeats: Mapping[tuple[str, str], Heartbeat]
    authorities: Mapping[str, datetime | None]
    probe: Probe
    inside: Inside | None
    now: datetime
    machines: Machines = NO_MACHINES

    def part(self, kind: str, name: str) -> Part | None:
        return next((each for each in self.parts if each.kind == kind and each.name.name == name), None)
