"""What one check of a Shoot has found out, once, for all conditions."""

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
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A Deployment, StatefulSet or Etcd of a control plane.

    Attributes:
        role: by its label.
        replicas, running: to run, and as its status says.
        problem: why it is not healthy; empty: it is.
        codes: of what went wrong.
    """

    kind: str
    name: Key
    role: str
    replicas: int
    is_deleting: bool
    problem: str
    running: int = 0
    codes: tuple[str, ...] = ()


def _projection(kind: str, problem_of: Callable[[Object], str | None]) -> Callable[[Object], Part]:
    """What is kept of the objects of a kind."""

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
    said = text(status.get("lastError"))
    return f'etcd "{name}" is not ready yet' + (f" ({said})" if said else "")


of_deployment = _projection(DEPLOYMENTS.kind, deployment.health)
of_stateful_set = _projection(STATEFUL_SETS.kind, stateful_set.health)
of_etcd = _projection(ETCDS.kind, _of_etcd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an extension says about a Shoot.

    Attributes:
        conditions: as they are in its status.
    """

    kind: str
    name: Key
    type: str
    conditions: Sequence[Object]

    def condition(self, of_type: str) -> Object | None:
        return next((each for each in self.conditions if each.get("type") == of_type), None)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Of an extension. Attributes: renewed: when it was seen last; None: never."""

    renewed: datetime | None


class ApiServer(Enum):
    NOT_RUNNING = "not running"
    UNREACHABLE = "unreachable"
    """There is no way to connect."""
    NO_ANSWER = "no answer"
    UNHEALTHY = "unhealthy"
    HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class Probe:
    """Of the Shoot's API server. Attributes: message: what went wrong."""

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
    """Why it is not corrected."""
    is_announced: bool = False
    """It is to be corrected, and users were informed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What was listed in the Shoot, which may be some periods old.

    Attributes:
        problem: why it could not be listed; empty: it was.
        users_of_old: of the certificate authority of before a rotation; None: they do not have to exchange it now.
        converted: definitions with several stored versions and a webhook that converts.
        nodes: reduced to what is checked; None: it is rolled out without workers.
        nodes_problem: what is wrong with their configurations and agents, when they were listed.
        leases_problem: what is wrong with their own Leases, then.
        tunnel_problem: why the API server of a Shoot with workers does not reach them; None: it does.
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
        """Whether it is to be listed with the next check: it could not be, or something is to be corrected then."""
        return bool(self.problem) or any(each.is_announced for each in self.webhooks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Attributes:
    shoot: as the garden has it.
    rolled_out: as it is in the seed: what extensions see, and what is rolled out.
    heartbeats: of the extension of an object, by kind and type; without an entry it is not known.
    authorities: when the certificate of each authority ends, None if that can't be read, by name.
    inside: None: not listed yet.
    machines: of its worker pools.
    has_autoscaler: whether the vertical Pod autoscaler runs where a Shoot asks for it, as it does but on this computer.
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
    has_autoscaler: bool = True

    def part(self, kind: str, name: str) -> Part | None:
        return next((each for each in self.parts if each.kind == kind and each.name.name == name), None)
