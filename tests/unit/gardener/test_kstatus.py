"""Custom resources by their conditions: current, in progress or failed."""

from typing import Any

import pytest

from gardener.health.checks.kstatus import is_custom
from gardener.health.checks.registry import BUILT_IN, Rules
from gardener.health.findings import Finding, Reference, health_finding, progress_api_version, progress_finding
from kube.objects import Object

RULES = Rules(kstatus=True)
WIDGET = Reference("example.com/v1", "Widget", "shop", "w")


def widget(*conditions: Object, generation: int = 2, deleted: bool = False, **status: Any) -> Object:
    meta = {"name": "w", "namespace": "shop", "generation": generation}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "status": {**({"conditions": list(conditions)} if conditions else {}), **status}}


def said(kind: str, status: str, **more: Any) -> Object:
    return {"type": kind, "status": status, "reason": "Why", "message": "m", **more}


def wrong(kind: str, status: str, expected: str) -> str:
    return f'condition "{kind}" has invalid status {status} (expected {expected}) due to Why: m'


OUTDATED = "observed generation outdated (1/2)"


@pytest.mark.parametrize(
    ("obj", "progressing", "unhealthy"),
    [
        # It reports nothing.
        ({"metadata": {"name": "w"}}, None, None),
        (widget(), None, None),
        (widget(observedGeneration=2), None, None),
        (widget(said("Synced", "False")), None, None),
        # Its controller has not seen it, or it goes.
        (widget(observedGeneration=1), OUTDATED, None),
        (widget(said("Ready", "False"), observedGeneration=1), OUTDATED, None),
        (widget(said("Stalled", "True"), observedGeneration=1), OUTDATED, None),
        (widget(said("Ready", "True"), deleted=True), "it is being deleted", None),
        # The conditions of kstatus.
        (widget(said("Reconciling", "True")), wrong("Reconciling", "True", "False"), None),
        (widget(said("Reconciling", "False")), None, None),
        (widget(said("Reconciling", "Unknown")), None, None),
        (widget(said("Stalled", "True")), None, wrong("Stalled", "True", "False")),
        (widget(said("Stalled", "False")), None, None),
        (widget(said("Stalled", "True"), said("Ready", "True")), None, wrong("Stalled", "True", "False")),
        (widget(said("Stalled", "True"), said("Reconciling", "True")), wrong("Reconciling", "True", "False"), None),
        (widget(said("Reconciling", "True"), said("Ready", "False")), wrong("Reconciling", "True", "False"), None),
        (widget(said("Reconciling", "True"), said("Ready", "True")), wrong("Reconciling", "True", "False"), None),
        # Ready.
        (widget(said("Ready", "True"), observedGeneration=2), None, None),
        (widget(said("Ready", "False")), None, wrong("Ready", "False", "True")),
        (widget(said("Ready", "Unknown")), wrong("Ready", "Unknown", "True"), None),
        (widget(said("Ready", "True", observedGeneration=2)), None, None),
        (widget(said("Ready", "False", observedGeneration=1)), 'condition "Ready" is about generation 1', None),
        # Without it, the usual others.
        (widget(said("Available", "True")), None, None),
        (widget(said("Available", "False")), None, wrong("Available", "False", "True")),
        (widget(said("Available", "Unknown")), wrong("Available", "Unknown", "True"), None),
        (widget(said("Ready", "True"), said("Available", "False")), None, None),
        (widget(said("Degraded", "True")), None, wrong("Degraded", "True", "False")),
        (widget(said("Failed", "True")), None, wrong("Failed", "True", "False")),
        (widget(said("Ready", "True"), said("Degraded", "True")), None, None),
        # A status of another shape reports nothing.
        (widget(status="ok"), None, None),
        ({"metadata": {"generation": 2}, "status": "ok"}, None, None),
        (widget(conditions={"Ready": "False"}), None, None),
        (widget(conditions=["Ready"]), None, None),
        (widget(observedGeneration="1"), None, None),
    ],
)
def test_conditions_decide(obj: Object, progressing: str | None, unhealthy: str | None) -> None:
    def reported(finding: Finding | None) -> str | None:
        return None if finding is None else finding.message.partition(": ")[2]

    assert reported(progress_finding(WIDGET, obj, rules=RULES)) == progressing
    assert reported(health_finding(WIDGET, obj, rules=RULES)) == unhealthy


def test_findings_name_the_object() -> None:
    assert health_finding(WIDGET, widget(said("Ready", "False")), rules=RULES) == Finding(
        WIDGET, "WidgetUnhealthy", f'Widget "shop/w" is unhealthy: {wrong("Ready", "False", "True")}'
    )
    assert progress_finding(WIDGET, widget(observedGeneration=1), rules=RULES) == Finding(
        WIDGET, "WidgetProgressing", f'Widget "shop/w" is progressing: {OUTDATED}'
    )


def test_an_object_may_be_exempted() -> None:
    obj = widget(said("Ready", "False"))
    obj["metadata"]["annotations"] = {"resources.gardener.cloud/skip-health-check": "true"}
    assert health_finding(WIDGET, obj, rules=RULES) is None


def test_without_the_option_they_are_healthy_if_they_exist() -> None:
    obj = widget(said("Ready", "False"), observedGeneration=1)
    assert health_finding(WIDGET, obj) is None
    assert progress_finding(WIDGET, obj) is None
    assert progress_api_version(WIDGET) is None


def test_any_version_is_read_as_it_is_listed() -> None:
    assert progress_api_version(WIDGET, rules=RULES) == "example.com/v1"
    newer = Reference("example.com/v2beta1", "Widget", "shop", "w")
    assert progress_api_version(newer, rules=RULES) == "example.com/v2beta1"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Secret"),
        ("v1", "Node"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ],
)
def test_kinds_of_kubernetes_have_no_such_rule(api_version: str, kind: str) -> None:
    assert RULES.health(api_version, kind) is None
    assert RULES.progress(api_version, kind) is None


def test_kinds_with_a_rule_of_their_own_keep_it() -> None:
    for api_version, kind in (("monitoring.coreos.com/v1", "Prometheus"), ("cert.gardener.cloud/v1alpha1", "Issuer")):
        assert RULES.health(api_version, kind) is BUILT_IN.health(api_version, kind) is not None
    assert RULES.health("cert.gardener.cloud/v2", "Issuer") is None


def test_custom_groups_may_end_like_those_of_kubernetes() -> None:
    assert is_custom("gateway.networking.k8s.io")
    assert is_custom("example.com")
    assert not is_custom("networking.k8s.io")
    assert not is_custom("apps")
