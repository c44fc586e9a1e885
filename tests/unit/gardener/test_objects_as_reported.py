"""Of kinds without a rule here, what the agent reports in the conditions counts."""

import pytest

from gardener.overview.objects import Health, HealthStatus, Live, as_reported
from kit.objects import conditions, managed_resource
from kube.objects import Object

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "shop", "name": "w"}
POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "p"}
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
def test_the_object_that_a_condition_names_is_as_it_says(
    reference: Object, status: HealthStatus, messages: dict[str, str], expected: HealthStatus
) -> None:
    [found] = as_reported(reporting(**messages), [Live(reference, reference, status)])
    assert found.status == expected
