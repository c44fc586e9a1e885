from typing import Any

import pytest
from hypothesis import strategies as st

from config.resource_manager.webhooks import Webhook
from gardener.keys import VPA_UPDATED_IN_PLACE
from kit.webhooks.mutating import NO_STATE, anything, mapping, mutated, one_of, record, well_behaved
from webhooks.handlers import vpa_in_place_updates

mutation = vpa_in_place_updates.mutation(Webhook(enabled=True), NO_STATE)
MODE = {"updateMode": "InPlaceOrRecreate"}
IN_PLACE = {"updatePolicy": MODE}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, IN_PLACE, id="no spec"),
        pytest.param({}, IN_PLACE, id="no policy"),
        pytest.param({"updatePolicy": None}, IN_PLACE, id="null policy"),
        pytest.param({"updatePolicy": {"updateMode": None}}, IN_PLACE, id="null mode"),
        pytest.param({"updatePolicy": {"updateMode": "Auto"}}, IN_PLACE, id="Auto"),
        pytest.param({"updatePolicy": {"updateMode": "Recreate"}}, IN_PLACE, id="Recreate"),
        pytest.param({"updatePolicy": {"a": 1}}, {"updatePolicy": {"a": 1, **MODE}}, id="other fields stay"),
    ],
)
def test_pods_are_not_evicted_without_need(before: Any, after: Any) -> None:
    labels = {VPA_UPDATED_IN_PLACE: "true"}
    assert mutated(mutation, {"spec": before}) == {"spec": after, "metadata": {"labels": labels}}


def test_other_labels_stay() -> None:
    before = {"metadata": {"labels": {"a": "b"}}, "spec": {"updatePolicy": {"updateMode": "Auto"}}}
    assert mutated(mutation, before)["metadata"] == {"labels": {"a": "b", VPA_UPDATED_IN_PLACE: "true"}}


@pytest.mark.parametrize("mode", ["Off", "Initial", "InPlaceOrRecreate", "", "other"])
def test_other_modes_are_a_choice(mode: str) -> None:
    unchanged = {"metadata": {}, "spec": {"updatePolicy": {"updateMode": mode}}}
    assert mutated(mutation, unchanged) == unchanged


autoscalers = record(
    apiVersion=st.just("autoscaling.k8s.io/v1"),
    kind=st.just("VerticalPodAutoscaler"),
    metadata=record(labels=mapping(VPA_UPDATED_IN_PLACE)),
    spec=record(updatePolicy=record(updateMode=one_of("Auto", "Off", "Recreate"), minReplicas=anything)),
)

test_it_behaves_well = well_behaved(
    mutation, autoscalers, touches=["spec.updatePolicy.updateMode", f"metadata.labels.{VPA_UPDATED_IN_PLACE}"]
)
