"""The conditions of a Shoot: one function each, from observations to the condition.

Only the first of several problems is reported, the most specific source first: reports of extensions, then missing
objects, then unhealthy ones by name, then ManagedResources.
"""

from collections.abc import Iterable, Sequence

from agent.gardenlet.shoot.care.rules.nodes import node_problem, scaling_problem
from agent.gardenlet.shoot.care.rules.observed import (
    CONTROL_PLANE,
    MONITORING,
    ApiServer,
    Observed,
    Part,
    Report,
)
from components import etcd
from components.registry import required_deployments
from config.gardenlet.controllers import ShootCare
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.conditions import (
    API_SERVER_AVAILABLE,
    CONTROL_PLANE_HEALTHY,
    EVERY_NODE_READY,
    IN_PROGRESS,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    SYSTEM_COMPONENTS_HEALTHY,
    not_checked,
)
from gardener.garden.shoots import last_operation, workers
from gardener.managed_resource.care import problem_of
from kube.clock import format_duration, format_time
from kube.conditions import Condition
from kube.objects import Object, key, labels, spec, text, texts
from kube.resources import DEPLOYMENTS, STATEFUL_SETS

_MONITORING_WITH_WORKERS = ("kube-state-metrics",)
_GUARDED = ("cluster-autoscaler", "kube-controller-manager", "machine-controller-manager")
"""Deployments that the dependency-watchdog scales down while most Nodes are out of contact."""
_ETCDS = [etcd.name(each) for each in etcd.ROLES]
_TYPES = {CONTROL_PLANE_HEALTHY, OBSERVABILITY_COMPONENTS_HEALTHY, SYSTEM_COMPONENTS_HEALTHY}


def has_workers(shoot: Object) -> bool:
    return bool(workers(spec(shoot)))


def not_running(observed: Observed) -> str:
    """Reason why no API server is running."""
    operation = last_operation(observed.rolled_out)
    if operation.get("type") == "Create":
        return "Shoot control plane has not been fully created yet."
    if operation.get("type") == "Delete":
        return "Shoot control plane has already been or is about to be deleted."
    return "Shoot control plane is not running at the moment."


# --- each condition


def api_server_available(observed: Observed) -> Condition:
    match observed.probe.api_server:
        case ApiServer.HEALTHY:
            message = "API server /healthz endpoint responded with success status code."
            return Condition(API_SERVER_AVAILABLE, "True", "HealthzRequestSucceeded", message)
        case ApiServer.UNHEALTHY:
            return Condition(API_SERVER_AVAILABLE, "False", "HealthzRequestFailed", observed.probe.message)
        case ApiServer.NO_ANSWER:
            return Condition(API_SERVER_AVAILABLE, "False", "HealthzRequestError", observed.probe.message)
        case ApiServer.NOT_RUNNING | ApiServer.UNREACHABLE:
            message = "Could not reach API server during client initialization."
            return Condition(API_SERVER_AVAILABLE, "False", "APIServerDown", message)


def control_plane_healthy(observed: Observed, settings: ShootCare) -> Condition:
    of_type = CONTROL_PLANE_HEALTHY
    return (
        _by_extensions(observed, of_type, settings)
        or _by_parts(observed, of_type, CONTROL_PLANE, {DEPLOYMENTS.kind: _required(observed), ETCDS.kind: _ETCDS})
        or _by_watchdog(observed)
        or _by_managed_resources(observed, of_type, settings)
        or Condition(of_type, "True", "ControlPlaneRunning", "All control plane components are healthy.")
    )


def observability_components_healthy(observed: Observed, settings: ShootCare, *, is_monitored: bool) -> Condition:
    """Args: is_monitored: whether the configuration enables monitoring of Shoots."""
    of_type = OBSERVABILITY_COMPONENTS_HEALTHY
    found = _by_extensions(observed, of_type, settings)
    if found is None and is_monitored and spec(observed.rolled_out).get("purpose") != "testing":
        required = _MONITORING_WITH_WORKERS if has_workers(observed.rolled_out) else ()
        found = _by_parts(observed, of_type, MONITORING, {DEPLOYMENTS.kind: required, STATEFUL_SETS.kind: ()})
    return (
        found
        or _by_managed_resources(observed, of_type, settings)
        or Condition(of_type, "True", "ObservabilityComponentsRunning", "All observability components are healthy.")
    )


def system_components_healthy(observed: Observed, settings: ShootCare) -> Condition:
    of_type = SYSTEM_COMPONENTS_HEALTHY
    if (unknown := _not_reached(observed, of_type)) is not None:
        return unknown
    return (
        _by_extensions(observed, of_type, settings)
        or _by_managed_resources(observed, of_type, settings)
        or _by_tunnel(observed)
        or Condition(of_type, "True", "SystemComponentsRunning", "All system components are healthy.")
    )


def every_node_ready(observed: Observed, settings: ShootCare) -> Condition:
    of_type = EVERY_NODE_READY
    if (unknown := _not_reached(observed, of_type)) is not None:
        return unknown
    if (found := _by_extensions(observed, of_type, settings)) is not None:
        return found
    inside = observed.inside
    if inside is None or inside.nodes is None:
        return not_checked(of_type, (inside.problem if inside else "") or "Nodes have not been listed yet")
    problem = (
        node_problem(observed.rolled_out, inside.nodes)
        or inside.nodes_problem
        or scaling_problem(inside.nodes, observed.machines)
        or inside.leases_problem
    )
    if problem is not None:
        return Condition(of_type, "False", problem.reason, problem.message, problem.codes)
    return Condition(of_type, "True", "EveryNodeReady", "All nodes are ready.")


def conditions(observed: Observed, settings: ShootCare, *, is_monitored: bool) -> list[Condition]:
    """All conditions that apply to the Shoot, in display order."""
    found = [
        api_server_available(observed),
        control_plane_healthy(observed, settings),
        observability_components_healthy(observed, settings, is_monitored=is_monitored),
    ]
    if has_workers(observed.rolled_out):
        found.append(every_node_ready(observed, settings))
    return [*found, system_components_healthy(observed, settings)]


def scaled_while_asleep(observed: Observed) -> Condition | None:
    """Condition for a component of a hibernated control plane that has replicas; None during an operation."""
    if _is_processing(observed):
        return None
    for each in _sorted(observed.parts):
        replicas = max(each.replicas, each.running)
        if each.role == CONTROL_PLANE and replicas and each.kind in {DEPLOYMENTS.kind, ETCDS.kind}:
            message = f'{each.kind} "{each.name.name}" has {replicas} replicas though the Shoot is hibernated'
            return Condition(CONTROL_PLANE_HEALTHY, "False", "HibernatedControlPlaneScaled", message)
    return None


# --- building blocks


def _is_processing(observed: Observed) -> bool:
    return last_operation(observed.shoot).get("state") == "Processing"


def _required(observed: Observed) -> list[str]:
    return required_deployments(observed.rolled_out)


def _not_reached(observed: Observed, of_type: str) -> Condition | None:
    match observed.probe.api_server:
        case ApiServer.NOT_RUNNING:
            return not_checked(of_type, not_running(observed))
        case ApiServer.UNREACHABLE:
            message = f"Could not initialize Shoot client for health check: {observed.probe.message}"
            return not_checked(of_type, message)
    return None


def _by_parts(observed: Observed, of_type: str, role: str, required: dict[str, Sequence[str]]) -> Condition | None:
    """Args: required: names by kind; other objects with the role are checked too, if present."""
    having = [each for each in _sorted(observed.parts) if each.role == role]
    for kind, names in required.items():
        present = {each.name.name for each in having if each.kind == kind}
        if missing := sorted(set(names) - present):
            plural = f"{kind.lower()}s" if kind != STATEFUL_SETS.kind else "stateful sets"
            message = f"Missing required {plural}: [{' '.join(missing)}]"
            return Condition(of_type, "False", f"{kind}Missing", message)
    for kind in required:
        for each in having:
            if each.kind == kind and each.problem:
                return Condition(of_type, "False", f"{kind}Unhealthy", _unhealthy(each), each.codes)
    return None


def _by_watchdog(observed: Observed) -> Condition | None:
    """Controllers without replicas are healthy by themselves. An operation may scale them down for a while."""
    scaled = [each for each in _sorted(observed.parts) if each.kind == DEPLOYMENTS.kind and each.name.name in _GUARDED]
    found = [
        each.name.name for each in scaled if each.is_meltdown or (each.replicas == 0 and not _is_processing(observed))
    ]
    if not found:
        return None
    message = (
        "The following deployments have been scaled down to 0 replicas (perhaps by dependency-watchdog-prober): "
        + ", ".join(found)
    )
    return Condition(CONTROL_PLANE_HEALTHY, "False", "ControllersScaledDown", message)


def _unhealthy(part: Part) -> str:
    what = f"{part.kind} extension resource" if part.kind == ETCDS.kind else part.kind
    return f'{what} "{part.name.name}" is unhealthy: {part.problem}'


def _by_managed_resources(observed: Observed, of_type: str, settings: ShootCare) -> Condition | None:
    for each in sorted(observed.managed_resources, key=key):
        if of_type in _counted_in(each):
            threshold = settings.managed_resource_progressing_threshold
            problem = problem_of(each, progressing_threshold=threshold, now=observed.now)
            if problem is not None:
                return Condition(of_type, "False", problem.reason, problem.message)
    return None


def _counted_in(managed_resource: Object) -> set[str]:
    """Types of the conditions in which a ManagedResource counts: without a class it is for the Shoot's own cluster."""
    labelled = labels(managed_resource).get(keys.CARE_CONDITION, "")
    if not spec(managed_resource).get("class"):
        return {SYSTEM_COMPONENTS_HEALTHY} | ({labelled} & {OBSERVABILITY_COMPONENTS_HEALTHY})
    return {labelled or CONTROL_PLANE_HEALTHY} & _TYPES


def _by_tunnel(observed: Observed) -> Condition | None:
    problem = observed.inside.tunnel_problem if observed.inside is not None else None
    return Condition(SYSTEM_COMPONENTS_HEALTHY, "False", problem.reason, problem.message) if problem else None


def _by_extensions(observed: Observed, of_type: str, settings: ShootCare) -> Condition | None:
    stale = settings.stale_extension_health_checks
    for each in sorted(observed.reports, key=lambda each: (each.kind, each.name)):
        reported = each.condition(of_type)
        if reported is None:
            continue
        if stale.enabled and (outdated := _outdated(observed, each, stale.threshold)):
            message = f"{_named(each)} reports an outdated health status (last updated: {outdated})."
            return Condition(of_type, "Unknown", f"{each.kind}OutdatedHealthCheckReport", message)
        match reported.get("status"):
            case "True":
                continue
            case "Progressing":
                return Condition(
                    of_type, IN_PROGRESS, each.kind + text(reported.get("reason")), text(reported.get("message"))
                )
            case status:
                message = f"{_named(each)} reports failing health check: {text(reported.get('message'))}"
                worst = "Unknown" if status == "Unknown" else "False"
                codes = tuple(texts(reported.get("codes")))
                return Condition(of_type, worst, f"{each.kind}UnhealthyReport", message, codes)
    return None


def _named(report: Report) -> str:
    return f"{report.kind} extension ({report.name})"


def _outdated(observed: Observed, report: Report, threshold: float) -> str:
    """Time of an extension's last heartbeat if it is too old; empty if it is recent or unknown."""
    heartbeat = observed.heartbeats.get((report.kind, report.type))
    if heartbeat is None:
        return ""
    if heartbeat.renewed is None:
        return "never"
    age = (observed.now - heartbeat.renewed).total_seconds()
    return f"{format_duration(round(age))} ago at {format_time(heartbeat.renewed)}" if age > threshold else ""


def _sorted(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda each: (each.kind, each.name))
