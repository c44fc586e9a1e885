"""Of kinds without a rule here, what the agent reports in the conditions counts."""

import pytest

from gardener.managed_resource.messages import pending_message, pending_text
from gardener.managed_resource.references import key_of_reference
from gardener.overview.objects import FINISHED, Health, HealthStatus, Live, as_reported
from kit.objects import conditions, managed_resource
from kube.objects import Object

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "shop", "name": "w"}
POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "p"}
SERVICE = {"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "s"}
FINE = HealthStatus(Health.HEALTHY)


def reporting(**messages: str) -> Object:
    statuses = {
        "healthy": "False" if "healthy" in messages else "True",
        "progressing": "True" if "progressing" in messages else "False",
    }
    found = conditions(**statuses)
    for each, name in zip(found, ("applied", "healthy", "progressing"), strict=True):
        each["message"] = messages.get(name, "")
    return managed_resource("garden/shop", conditions=found)


@pytest.mark.parametrize(
    ("reference", "status", "messages", "expected"),
    [
        (WIDGET, FINE, {}, FINE),
        (WIDGET, FINE, {"healthy": 'Widget "shop/w" is unhealthy: broken'}, HealthStatus(Health.UNHEALTHY, "broken")),
        (
            WIDGET,
            FINE,
            {"progressing": 'Widget "shop/w" is progressing: slow'},
            HealthStatus(Health.PROGRESSING, "slow"),
        ),
        (WIDGET, FINE, {"healthy": 'Widget "shop/other" is unhealthy: broken'}, FINE),
        (
            WIDGET,
            HealthStatus(Health.MISSING),
            {"healthy": 'Widget "shop/w" is unhealthy: broken'},
            HealthStatus(Health.MISSING),
        ),
        # It has a rule, by which it is fine by now.
        (POD, FINE, {"healthy": 'Pod "shop/p" is unhealthy: broken'}, FINE),
    ],
)
def test_the_object_that_a_condition_names_is_as_it_states(
    reference: Object, status: HealthStatus, messages: dict[str, str], expected: HealthStatus
) -> None:
    [found] = as_reported(reporting(**messages), [Live(reference, reference, status)])
    assert found.status == expected


KEPT = 'kept until "example.com/v1/Widget/shop/w" is gone, which may need it'


@pytest.mark.parametrize(
    ("reference", "expected"), [(POD, HealthStatus(Health.DELETING, KEPT)), (WIDGET, FINE), (SERVICE, FINE)]
)
def test_what_is_kept_for_the_removal_of_others_reports_so(reference: Object, expected: HealthStatus) -> None:
    waiting = (("example.com/v1/Widget/shop/w", "waits for example.com/hold"), ("v1/Pod/shop/p", KEPT))
    pending = [(name, pending_text(name, reason=reason)) for name, reason in waiting]
    found = conditions(applied="Progressing", reason="DeletionPending", message=pending_message(pending))
    [live] = as_reported(managed_resource("garden/shop", conditions=found), [Live(reference, reference, FINE)])
    assert live.status == expected


JOB = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "shop", "name": "j"}
GONE = HealthStatus(Health.MISSING)
REMOVED: Object = {"spec": {"ttlSecondsAfterFinished": 60}}
STAYING: Object = {"spec": {}}
IGNORED = {"resources.gardener.cloud/ignore": "true"}


@pytest.mark.parametrize(
    ("reference", "managed", "manifest", "expected"),
    [
        (JOB, {}, REMOVED, FINISHED),
        (JOB, {"healthy": "False"}, REMOVED, FINISHED),
        (JOB, {}, STAYING, GONE),
        # Its Secrets may not be read: the agent creates any other Job again, and misses it meanwhile.
        (JOB, {}, None, FINISHED),
        (JOB, {"healthy": "False"}, None, GONE),
        (JOB, {"applied": "False"}, REMOVED, GONE),
        (JOB, {"annotations": IGNORED}, REMOVED, GONE),
        (POD, {}, REMOVED, GONE),
    ],
)
def test_a_job_that_is_gone_since_it_has_finished_is_completed(
    reference: Object, managed: Object, manifest: Object | None, expected: HealthStatus
) -> None:
    statuses = {name: value for name, value in managed.items() if name != "annotations"}
    obj = managed_resource(
        "garden/shop", conditions=conditions(**statuses), annotations=managed.get("annotations") or {}
    )
    manifests = None if manifest is None else {key_of_reference(reference): manifest}
    [found] = as_reported(obj, [Live(reference, None, GONE)], manifests)
    assert found.status == expected


@pytest.mark.parametrize(
    ("statuses", "entry", "expected"),
    [
        ({"applied": "False", "healthy": "False"}, {"namespace": "shop", "name": "j", "manifest": "00"}, FINISHED),
        ({"applied": "False"}, {"namespace": "shop", "name": "another", "manifest": "00"}, GONE),
    ],
)
def test_the_status_reports_which_jobs_have_run(
    statuses: dict[str, str], entry: Object, expected: HealthStatus
) -> None:
    """Also while other objects fail, and for users who may not read the Secrets."""
    obj = managed_resource("garden/shop", conditions=conditions(**statuses), status={"jobs": [entry]})
    [found] = as_reported(obj, [Live(JOB, None, GONE)])
    assert found.status == expected


def test_a_job_that_has_failed_and_is_gone_is_not_completed() -> None:
    wrong = 'condition "Failed" has invalid status True'
    obj = reporting(healthy=f'Job "shop/j" is unhealthy: {wrong}')
    [found] = as_reported(obj, [Live(JOB, None, GONE)], {key_of_reference(JOB): REMOVED})
    assert found.status == HealthStatus(Health.UNHEALTHY, wrong)
