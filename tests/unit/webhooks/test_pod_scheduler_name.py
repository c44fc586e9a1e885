from typing import Any

import pytest
from hypothesis import given

from config.resource_manager.webhooks import PodSchedulerName
from kit.webhooks.mutating import (
    NO_STATE,
    answered,
    behaves_well,
    damaged,
    mutated,
    one_of,
    patiently,
    pods,
    record,
    request,
)
from webhooks.admission import Changed
from webhooks.generic import defaulter
from webhooks.handlers import pod_scheduler_name

settings = PodSchedulerName(enabled=True, scheduler_name="bin-packing-scheduler")
mutation = pod_scheduler_name.mutation(settings, NO_STATE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"spec": {"schedulerName": "bin-packing-scheduler"}}),
        ({"spec": {"priority": 0}}, {"spec": {"priority": 0, "schedulerName": "bin-packing-scheduler"}}),
        ({"spec": {"schedulerName": None}}, {"spec": {"schedulerName": "bin-packing-scheduler"}}),
        ({"spec": {"schedulerName": ""}}, {"spec": {"schedulerName": "bin-packing-scheduler"}}),
        ({"spec": {"schedulerName": "default-scheduler"}}, {"spec": {"schedulerName": "bin-packing-scheduler"}}),
        ({"spec": {"schedulerName": "mine"}}, {"spec": {"schedulerName": "mine"}}),
    ],
)
def test_pods_that_ask_for_no_scheduler_get_the_configured_one(before: Any, after: Any) -> None:
    assert mutated(mutation, before) == after


def test_the_handler_answers_with_the_pod_before_and_after() -> None:
    answer = answered(defaulter(mutation), request({"spec": {}}))
    assert answer == Changed({"spec": {}}, {"spec": {"schedulerName": "bin-packing-scheduler"}})


some_pods = pods(record(), schedulerName=one_of("", "default-scheduler", "mine"))


@patiently
@given(some_pods | damaged(some_pods))
def test_it_behaves_well(obj: Any) -> None:
    behaves_well(lambda pod: mutated(mutation, pod), obj, touches=["spec.schedulerName"])
