from typing import Any

import pytest

from config.resource_manager.webhooks import PodSchedulerName
from kit.webhooks.mutating import NO_STATE, answered, mutated, one_of, pods, record, request, well_behaved
from webhooks.admission import Changed
from webhooks.generic import defaulter
from webhooks.handlers import pod_scheduler_name

settings = PodSchedulerName(enabled=True, scheduler_name="bin-packing-scheduler")
mutation = pod_scheduler_name.mutation(settings, NO_STATE)
CONFIGURED = {"schedulerName": "bin-packing-scheduler"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"spec": CONFIGURED}),
        ({"spec": {"priority": 0}}, {"spec": {"priority": 0, **CONFIGURED}}),
        ({"spec": {"schedulerName": None}}, {"spec": CONFIGURED}),
        ({"spec": {"schedulerName": ""}}, {"spec": CONFIGURED}),
        ({"spec": {"schedulerName": "default-scheduler"}}, {"spec": CONFIGURED}),
        ({"spec": {"schedulerName": "mine"}}, {"spec": {"schedulerName": "mine"}}),
    ],
)
def test_pods_that_ask_for_no_scheduler_get_the_configured_one(before: Any, after: Any) -> None:
    assert mutated(mutation, before) == after


def test_the_handler_answers_with_the_pod_before_and_after() -> None:
    assert answered(defaulter(mutation), request({"spec": {}})) == Changed({"spec": {}}, {"spec": CONFIGURED})


some_pods = pods(record(), schedulerName=one_of("", "default-scheduler", "mine"))

test_it_behaves_well = well_behaved(mutation, some_pods, touches=["spec.schedulerName"])
