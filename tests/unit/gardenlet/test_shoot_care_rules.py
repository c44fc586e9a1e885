"""From what was observed of a Shoot to its conditions and constraints."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.gardenlet.shoot.care.rules import status
from agent.gardenlet.shoot.care.rules.conditions import conditions, scaled_while_asleep
from agent.gardenlet.shoot.care.rules.constraints import constraints
from agent.gardenlet.shoot.care.rules.nodes import Machines, NodeProblem, kept_of, node_problem
from agent.gardenlet.shoot.care.rules.observed import (
    ApiServer,
    Heartbeat,
    Inside,
    Observed,
    Part,
    Probe,
    Report,
    WebhookFinding,
    of_deployment,
    of_etcd,
)
from config.gardenlet.controllers import ShootCare, StaleExtensionHealthChecks
from gardener.conditions import SHOOT_CONDITIONS
from kube.clock import format_time
from kube.conditions import Condition
from kube.objects import Key, Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "shoot--dev--rose"
SHOOT: Object = {
    "metadata": {"name": "rose"},
    "spec": {"provider": {}},
    "status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}, "technicalID": NAMESPACE},
}
POOL: Object = {"name": "w", "minimum": 1, "maximum": 2}
WITH_WORKERS: Object = {**SHOOT, "spec": {"provider": {"workers": [POOL]}, "kubernetes": {"version": "1.30.2"}}}


def part(name: str, kind: str = "Deployment", **fields: Any) -> Part:
    given: dict[str, Any] = {"role": "controlplane", "replicas": 1, "is_deleting": False, "problem": "", **fields}
    return Part(kind=kind, name=Key(NAMESPACE, name), **given)


PARTS = [
    *(part(each) for each in ("gardener-resource-manager", "kube-apiserver", "kube-controller-manager")),
    *(part(each, "Etcd") for each in ("etcd-main", "etcd-events")),
]


def with_part(name: str, **fields: Any) -> list[Part]:
    return [replace(each, **fields) if each.name.name == name else each for each in PARTS]


def report(of_type: str, state: str, *, kind: str = "Extension", **fields: Any) -> Report:
    reported = {"type": of_type, "status": state, "reason": "Bad", "message": "it is bad", **fields}
    return Report(kind=kind, name=Key(NAMESPACE, "e"), type="x", conditions=[reported])


def managed_resource(*, of_class: str | None = "seed", label: str = "", healthy: str = "False") -> Object:
    states = {"ResourcesApplied": "True", "ResourcesHealthy": healthy, "ResourcesProgressing": "False"}
    listed = [
        {"type": each, "status": state, "reason": "PodsUnhealthy", "message": "x"} for each, state in states.items()
    ]
    return {
        "metadata": {
            "namespace": NAMESPACE,
            "name": "m",
            "generation": 1,
            "labels": {"care.gardener.cloud/condition-type": label},
        },
        "spec": {"class": of_class},
        "status": {"observedGeneration": 1, "conditions": listed},
    }


def observed(**fields: Any) -> Observed:
    given: dict[str, Any] = {
        "shoot": SHOOT,
        "rolled_out": SHOOT,
        "parts": PARTS,
        "managed_resources": [],
        "reports": [],
        "heartbeats": {},
        "authorities": {"ca": NOW + timedelta(days=900)},
        "probe": Probe(ApiServer.HEALTHY),
        "inside": Inside(),
        "now": NOW,
        **fields,
    }
    return Observed(**given)


def found(of_type: str, settings: ShootCare | None = None, **fields: Any) -> Condition:
    all_ = conditions(observed(**fields), settings or ShootCare(), is_monitored=True)
    return next(each for each in all_ if each.type == of_type)


PROCESSING: Object = {**SHOOT, "status": {"lastOperation": {"type": "Reconcile", "state": "Processing"}}}


@pytest.mark.parametrize(
    ("fields", "shoot", "is_healthy"),
    [
        ({"replicas": 0}, SHOOT, False),
        ({"replicas": 0, "is_meltdown": True}, PROCESSING, False),
        ({"replicas": 0}, PROCESSING, True),
        ({"replicas": 1}, SHOOT, True),
    ],
)
def test_a_controller_that_the_watchdog_has_scaled_down_is_unhealthy(
    fields: dict[str, Any], shoot: Object, is_healthy: bool
) -> None:
    condition = found("ControlPlaneHealthy", parts=with_part("kube-controller-manager", **fields), shoot=shoot)
    assert (condition.status == "True") is is_healthy
    if not is_healthy:
        assert condition.reason == "ControllersScaledDown"
        assert condition.message.endswith("(perhaps by dependency-watchdog-prober): kube-controller-manager")


def test_the_watchdog_marks_what_it_has_scaled_down() -> None:
    marked = {"metadata": {"annotations": {"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}}}
    assert of_deployment(marked).is_meltdown
    assert not of_deployment({"metadata": {}}).is_meltdown


def test_all_is_well() -> None:
    all_ = conditions(observed(), ShootCare(), is_monitored=True)
    assert [(each.type, each.status) for each in all_] == [
        ("APIServerAvailable", "True"),
        ("ControlPlaneHealthy", "True"),
        ("ObservabilityComponentsHealthy", "True"),
        ("SystemComponentsHealthy", "True"),
    ]
    assert {(each.type, each.status) for each in constraints(observed())} == {
        ("CACertificateValiditiesAcceptable", "True"),
        ("CRDsWithProblematicConversionWebhooks", "True"),
        ("HibernationPossible", "True"),
        ("MaintenancePreconditionsSatisfied", "True"),
    }


@pytest.mark.parametrize(
    ("probe", "reason", "text"),
    [
        (Probe(ApiServer.UNHEALTHY, "code 500"), "HealthzRequestFailed", "code 500"),
        (Probe(ApiServer.NO_ANSWER, "refused"), "HealthzRequestError", "refused"),
        (Probe(ApiServer.UNREACHABLE, "no token"), "APIServerDown", "Could not reach API server"),
        (Probe(ApiServer.NOT_RUNNING), "APIServerDown", "Could not reach API server"),
    ],
)
def test_the_api_server(probe: Probe, reason: str, text: str) -> None:
    condition = found("APIServerAvailable", probe=probe)
    assert (condition.status, condition.reason) == ("False", reason)
    assert text in condition.message


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"type": "Create", "state": "Processing"}, "has not been fully created yet"),
        ({"type": "Delete", "state": "Processing"}, "is about to be deleted"),
        ({"type": "Reconcile", "state": "Processing"}, "is not running at the moment"),
    ],
)
def test_what_can_not_be_queried_is_unknown(operation: Object, text: str) -> None:
    rolled_out = {**SHOOT, "status": {"lastOperation": operation}}
    condition = found("SystemComponentsHealthy", rolled_out=rolled_out, probe=Probe(ApiServer.NOT_RUNNING))
    assert (condition.status, condition.reason) == ("Unknown", "ConditionCheckError")
    assert text in condition.message


BAD = report("ControlPlaneHealthy", "False")


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"parts": PARTS[1:]}, ("DeploymentMissing", "[gardener-resource-manager]")),
        ({"parts": PARTS[:-1]}, ("EtcdMissing", "[etcd-events]")),
        ({"parts": with_part("kube-apiserver", role="")}, ("DeploymentMissing", "[kube-apiserver]")),
        ({"parts": with_part("kube-apiserver", replicas=0)}, ("ControlPlaneRunning", "")),
        ({"parts": with_part("kube-apiserver", problem="no pods")}, ("DeploymentUnhealthy", '"kube-apiserver"')),
        ({"parts": with_part("etcd-main", problem="bad")}, ("EtcdUnhealthy", 'resource "etcd-main" is unhealthy: bad')),
        ({"parts": [*PARTS, part("extra", problem="bad")]}, ("DeploymentUnhealthy", '"extra"')),
        ({"parts": [*PARTS, part("other", role="monitoring", problem="x")]}, ("ControlPlaneRunning", "")),
        ({"managed_resources": [managed_resource()]}, ("PodsUnhealthy", "x")),
        ({"managed_resources": [managed_resource(label="SystemComponentsHealthy")]}, ("ControlPlaneRunning", "")),
        ({"managed_resources": [managed_resource(of_class=None)]}, ("ControlPlaneRunning", "")),
        # What knows the cause best comes first.
        ({"reports": [BAD], "parts": PARTS[1:]}, ("ExtensionUnhealthyReport", "failing health check: it is bad")),
        ({"reports": [report("ControlPlaneHealthy", "True")]}, ("ControlPlaneRunning", "")),
        ({"reports": [report("ControlPlaneHealthy", "Progressing")]}, ("ExtensionBad", "it is bad")),
        ({"reports": [report("SystemComponentsHealthy", "False")]}, ("ControlPlaneRunning", "")),
    ],
)
def test_the_control_plane(fields: Any, reported: tuple[str, str]) -> None:
    condition = found("ControlPlaneHealthy", **fields)
    assert condition.reason == reported[0]
    assert reported[1] in condition.message


@pytest.mark.parametrize(
    ("heartbeats", "enabled", "reason"),
    [
        ({}, True, "ControlPlaneRunning"),  # whose installation is not known
        ({("Extension", "x"): Heartbeat(NOW - timedelta(minutes=4))}, True, "ControlPlaneRunning"),
        ({("Extension", "x"): Heartbeat(NOW - timedelta(minutes=6))}, True, "ExtensionOutdatedHealthCheckReport"),
        ({("Extension", "x"): Heartbeat(None)}, True, "ExtensionOutdatedHealthCheckReport"),
        ({("Extension", "x"): Heartbeat(None)}, False, "ControlPlaneRunning"),
    ],
)
def test_what_a_silent_extension_reports_does_not_count(heartbeats: Any, enabled: bool, reason: str) -> None:
    settings = ShootCare(stale_extension_health_checks=StaleExtensionHealthChecks(enabled=enabled))
    reported = [report("ControlPlaneHealthy", "True")]
    condition = found("ControlPlaneHealthy", settings, reports=reported, heartbeats=heartbeats)
    assert condition.reason == reason


@pytest.mark.parametrize(
    ("workers", "missing"),
    [
        ([{**POOL, "maximum": 1}], "[kube-scheduler machine-controller-manager]"),
        ([POOL], "[cluster-autoscaler kube-scheduler machine-controller-manager]"),
    ],
)
def test_parts_for_workers(workers: list[Object], missing: str) -> None:
    rolled_out = {**WITH_WORKERS, "spec": {**WITH_WORKERS["spec"], "provider": {"workers": workers}}}
    assert found("ControlPlaneHealthy", rolled_out=rolled_out).message == f"Missing required deployments: {missing}"
    assert found("EveryNodeReady", rolled_out=rolled_out, inside=Inside(nodes=[])).reason == "MissingNodes"


def node(**conditions_: str) -> Object:
    listed = [{"type": each, "status": state} for each, state in ({"Ready": "True"} | conditions_).items()]
    meta = {"name": "n", "labels": {"worker.gardener.cloud/pool": "w"}}
    return {"metadata": meta, "status": {"conditions": listed, "nodeInfo": {"kubeletVersion": "v1.30.2"}}}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([], "MissingNodes"),
        ([node()], None),
        ([node(Ready="Unknown")], "NodeUnhealthy"),
        ([node(DiskPressure="True")], "NodeUnhealthy"),
        (
            [{**node(), "status": {**node()["status"], "nodeInfo": {"kubeletVersion": "v1.30.1"}}}],
            "KubeletVersionMismatch",
        ),
        ([{**node(), "status": {**node()["status"], "nodeInfo": {"kubeletVersion": "v1.29.9"}}}], None),
        ([{"metadata": {"name": "n"}}], "MissingNodes"),
    ],
)
def test_nodes(nodes: Sequence[Object], reason: str | None) -> None:
    problem = node_problem(WITH_WORKERS, [kept_of(each) for each in nodes])
    assert (problem and problem.reason) == reason


SILENT, BROKEN = NodeProblem("NodeAgentUnhealthy", "m"), NodeProblem("TooManyExpiredNodeLeases", "m")


@pytest.mark.parametrize(
    ("inside", "wanted", "reported"),
    [
        (None, 1, ("Unknown", "ConditionCheckError")),
        (Inside(problem="forbidden"), 1, ("Unknown", "ConditionCheckError")),
        (Inside(), 1, ("Unknown", "ConditionCheckError")),  # it was listed before there were workers
        (Inside(nodes=[node()], leases_problem=BROKEN), 1, ("False", "TooManyExpiredNodeLeases")),
        (Inside(nodes=[node()], leases_problem=BROKEN), 2, ("False", "NodesScalingUp")),
        (Inside(nodes=[node()], nodes_problem=SILENT, leases_problem=BROKEN), 2, ("False", "NodeAgentUnhealthy")),
        (Inside(nodes=[], nodes_problem=SILENT), 1, ("False", "MissingNodes")),
        (Inside(nodes=[node()]), 1, ("True", "EveryNodeReady")),
    ],
)
def test_of_several_problems_with_nodes_the_first_is_named(
    inside: Inside | None, wanted: int, reported: tuple[str, str]
) -> None:
    condition = found("EveryNodeReady", rolled_out=WITH_WORKERS, inside=inside, machines=Machines(wanted))
    assert (condition.status, condition.reason) == reported


def test_a_tunnel_that_does_not_reach_nodes() -> None:
    inside = Inside(nodes=[], tunnel_problem=NodeProblem("TunnelConnectionBroken", "m"))
    assert found("SystemComponentsHealthy", rolled_out=WITH_WORKERS, inside=inside).reason == "TunnelConnectionBroken"
    assert found("SystemComponentsHealthy", rolled_out=WITH_WORKERS).reason == "SystemComponentsRunning"


@given(
    parts=st.lists(st.sampled_from([*PARTS, part("kube-apiserver", replicas=0, is_deleting=True)]), unique=True),
    probe=st.sampled_from([Probe(each, "m") for each in ApiServer]),
    inside=st.sampled_from([None, Inside(), Inside(problem="x"), Inside(nodes=[]), Inside(nodes=[node()])]),
    shoots=st.permutations([SHOOT, WITH_WORKERS]),
    operation=st.sampled_from([{}, {"type": "Create", "state": "Processing"}, {"type": "Delete"}]),
)
def test_whatever_is_seen_each_condition_is_evaluated_once(
    parts: Any, probe: Probe, inside: Inside | None, shoots: Sequence[Object], operation: Object
) -> None:
    """While a control plane wakes, sleeps or goes, what is seen of it in one check may not fit together."""
    shoot, rolled_out = shoots[0], {**shoots[1], "status": {"lastOperation": operation}}
    seen = observed(shoot=shoot, rolled_out=rolled_out, parts=parts, probe=probe, inside=inside)
    types = [each.type for each in conditions(seen, ShootCare(), is_monitored=True)]
    expected = {*SHOOT_CONDITIONS} - (set() if rolled_out["spec"]["provider"] else {"EveryNodeReady"})
    assert sorted(types) == sorted(expected)
    assert all(each.reason and each.message for each in constraints(seen))
    if inside is None and probe.api_server is ApiServer.UNREACHABLE:
        assert found_in(seen, "SystemComponentsHealthy") == "Unknown"


def found_in(seen: Observed, of_type: str) -> str:
    return next(each.status for each in conditions(seen, ShootCare(), is_monitored=True) if each.type == of_type)


def test_what_runs_of_a_control_plane_that_sleeps() -> None:
    asleep = [replace(each, replicas=0) for each in PARTS]
    assert scaled_while_asleep(observed(parts=asleep)) is None
    wrong = scaled_while_asleep(observed(parts=[*asleep[1:], PARTS[0]]))
    assert wrong is not None
    assert wrong.message == 'Deployment "gardener-resource-manager" has 1 replicas though the Shoot is hibernated'
    still_there = [replace(asleep[-1], running=1), *asleep[:-1]]
    wrong = scaled_while_asleep(observed(parts=still_there))
    assert wrong is not None
    assert wrong.message == 'Etcd "etcd-events" has 1 replicas though the Shoot is hibernated'
    waking = {**SHOOT, "status": {"lastOperation": {"state": "Processing"}}}
    assert scaled_while_asleep(observed(shoot=waking)) is None


# --- constraints

PROBLEM = WebhookFinding(kind="V", name="v", problem="webhook w", is_remediated=False)


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"probe": Probe(ApiServer.NOT_RUNNING)}, ("False", "ConstraintNotChecked")),
        ({"probe": Probe(ApiServer.UNREACHABLE, "no token"), "inside": None}, ("Unknown", "ConditionCheckError")),
        ({"probe": Probe(ApiServer.UNREACHABLE, "no token")}, ("Unknown", "ConditionCheckError")),
        ({"inside": Inside(problem="forbidden")}, ("Unknown", "ConditionCheckError")),
        ({"inside": Inside(webhooks=[PROBLEM])}, ("False", "ProblematicWebhooks")),
        ({"inside": Inside(webhooks=[replace(PROBLEM, is_remediated=True)])}, ("False", "ProblematicWebhooks")),
        (
            {"inside": Inside(webhooks=[replace(PROBLEM, problem="", is_remediated=True)])},
            ("False", "RemediatedWebhooks"),
        ),
        ({"inside": Inside(webhooks=[replace(PROBLEM, problem="")])}, ("True", "NoProblematicWebhooks")),
    ],
)
def test_webhooks(fields: Any, reported: tuple[str, str]) -> None:
    all_ = {each.type: each for each in constraints(observed(**fields))}
    for each in ("HibernationPossible", "MaintenancePreconditionsSatisfied"):
        assert (all_[each].status, all_[each].reason) == reported
        assert all_[each].codes == (
            ("ERR_PROBLEMATIC_WEBHOOK",) if "Webhooks" in reported[1] and reported[0] == "False" else ()
        )


@pytest.mark.parametrize(
    ("until", "reported"),
    [(NOW + timedelta(days=364), "False"), (NOW + timedelta(days=366), "True"), (None, "Unknown")],
)
def test_authorities(until: datetime | None, reported: str) -> None:
    """Also of a Shoot whose API server can't be queried."""
    all_ = constraints(observed(authorities={"ca": until}, probe=Probe(ApiServer.NOT_RUNNING)))
    assert all_[0].status == reported


# --- the status


def checked(shoot: Object, *checks: Condition, limits: Sequence[Condition] = (), threshold: float = 60) -> Object:
    thresholds = {"ControlPlaneHealthy": threshold}
    return status.with_checks(shoot["status"], checks, limits, shoot=shoot, thresholds=thresholds, now=NOW)


WRONG = Condition("ControlPlaneHealthy", "False", "Bad", "it is bad", ("ERR_X",))


def shoot_with(state: str, *, since: datetime, operation: Object | None = None) -> Object:
    moment = format_time(since)
    old = {
        "type": "ControlPlaneHealthy",
        "status": state,
        "reason": "Bad",
        "message": "m",
        "lastTransitionTime": moment,
    }
    done = {"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": format_time(NOW - timedelta(hours=1))}
    return {**SHOOT, "status": {"lastOperation": done | (operation or {}), "conditions": [old]}}


@pytest.mark.parametrize(
    ("shoot", "reported"),
    [
        (shoot_with("True", since=NOW), "Progressing"),
        (shoot_with("Progressing", since=NOW - timedelta(seconds=59)), "Progressing"),
        (shoot_with("Progressing", since=NOW - timedelta(seconds=61)), "False"),
        (shoot_with("False", since=NOW, operation={"state": "Processing"}), "Progressing"),
        (shoot_with("False", since=NOW, operation={"type": "Create", "state": "Error"}), "Progressing"),
        (shoot_with("False", since=NOW), "False"),
        ({**SHOOT, "status": {}}, "Progressing"),
    ],
)
def test_patience_and_pardon(shoot: Object, reported: str) -> None:
    written = checked(shoot, WRONG)["conditions"][0]
    assert (written["status"], written["codes"]) == (reported, ["ERR_X"])


def test_conditions_of_others_are_kept_and_optional_constraints_go() -> None:
    others = {"type": "Mine", "status": "True"}
    optional = Condition("CACertificateValiditiesAcceptable", "True", "NoExpiringCACertificates", "m")
    shoot = {**SHOOT, "status": {"conditions": [others], "constraints": [{**vars_of(optional), "status": "False"}]}}
    written = checked(shoot, limits=[optional])
    assert written["conditions"] == [others]
    assert written["constraints"] == []
    asleep = {**shoot, "status": {**shoot["status"], "hibernated": True}}
    assert [each["status"] for each in checked(asleep, limits=[optional])["constraints"]] == ["True"]


def vars_of(condition: Condition) -> Object:
    return {"type": condition.type, "reason": condition.reason, "message": condition.message}


# --- projections


@pytest.mark.parametrize(
    ("status_", "problem"),
    [
        ({"observedGeneration": 2, "ready": True}, ""),
        ({"observedGeneration": 1, "ready": True}, "observed generation outdated (1/2)"),
        ({"observedGeneration": 2, "lastError": "no backup"}, 'etcd "main" is not ready yet (no backup)'),
        ({"observedGeneration": 2, "ready": True, "lastError": "older"}, ""),
    ],
)
def test_etcds(status_: Object, problem: str) -> None:
    meta = {"namespace": NAMESPACE, "name": "main", "generation": 2, "labels": {"gardener.cloud/role": "controlplane"}}
    kept = of_etcd({"metadata": meta, "spec": {"replicas": 3}, "status": status_})
    assert (kept.role, kept.replicas, kept.problem) == ("controlplane", 3, problem)
