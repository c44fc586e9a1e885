from typing import Any

import pytest
from hypothesis import strategies as st

from config.resource_manager.webhooks import Webhook
from kit.webhooks.mutating import NO_STATE, anything, mutated, record, refusal, several, well_behaved, words
from webhooks.admission import Errored
from webhooks.handlers import endpoint_slice_hints

mutation = endpoint_slice_hints.mutation(Webhook(enabled=True), NO_STATE)
OWN, OTHER = ({"forZones": [{"name": zone}]} for zone in ("a", "other"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"zone": "a"}, {"zone": "a", "hints": OWN}),
        ({"zone": "a", "hints": {**OTHER, "forNodes": [{"name": "n"}]}}, {"zone": "a", "hints": OWN}),
        ({"zone": "a", "conditions": {"a": False}}, {"zone": "a", "conditions": {"a": False}, "hints": OWN}),
        ({"zone": "", "hints": OTHER}, {"zone": "", "hints": OTHER}),
        ({"zone": None}, {"zone": None}),
        ({"hints": OTHER}, {"hints": OTHER}),
    ],
)
def test_endpoints_are_hinted_to_their_own_zone(before: Any, after: Any) -> None:
    foreign = {"addressType": "IPv6", "ports": [{"port": 1}]}
    assert mutated(mutation, {**foreign, "endpoints": [before, {}]}) == {**foreign, "endpoints": [after, {}]}


@pytest.mark.parametrize("unchanged", [{}, {"endpoints": None}, {"endpoints": []}])
def test_slices_without_endpoints_stay_as_they_are(unchanged: Any) -> None:
    assert mutated(mutation, unchanged) == unchanged


def test_another_kind_cannot_be_decoded() -> None:
    answer = refusal(mutation, {"apiVersion": "v1", "kind": "Pod"})
    assert answer == Errored(400, "unable to decode v1, Kind=Pod into EndpointSlice")


slices = record(
    apiVersion=st.just("discovery.k8s.io/v1"),
    kind=st.just("EndpointSlice"),
    endpoints=several(record(zone=words, hints=anything, addresses=anything)),
)

test_it_behaves_well = well_behaved(mutation, slices, touches=["endpoints[].hints"])
