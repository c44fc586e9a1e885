from typing import Any

import pytest
from hypothesis import given

from config.resource_manager.webhooks import KubernetesServiceHost
from kit.webhooks.mutating import (
    NO_STATE,
    behaves_well,
    damaged,
    mutated,
    one_of,
    patiently,
    pods,
    record,
    several,
    words,
)
from webhooks.admission import Errored, Refusal
from webhooks.handlers import kubernetes_service_host

mutation = kubernetes_service_host.mutation(KubernetesServiceHost(enabled=True, host="api.example.com"), NO_STATE)
HOST = {"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}
OTHER = {"name": "A", "value": "b"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {}, id="no env"),
        pytest.param({"env": None}, {"env": [HOST]}, id="null env"),
        pytest.param({"env": [OTHER]}, {"env": [OTHER, HOST]}, id="at the end"),
        pytest.param({"env": [{**HOST, "value": ""}]}, {"env": [{**HOST, "value": ""}]}, id="an empty value stays"),
        pytest.param(
            {"env": [{"name": HOST["name"], "valueFrom": {}}]},
            {"env": [{"name": HOST["name"], "valueFrom": {}}]},
            id="a reference stays",
        ),
        pytest.param(
            {"env": [{"name": "KUBERNETES_SERVICE_PORT", "value": "1"}]},
            {"env": [{"name": "KUBERNETES_SERVICE_PORT", "value": "1"}, HOST]},
            id="the port does not matter",
        ),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_without_the_variable_get_it(field: str, before: Any, after: Any) -> None:
    after = after or {"env": [HOST]}
    pod = {"spec": {field: [before, {"name": "second", "env": [HOST]}]}}
    assert mutated(mutation, pod) == {"spec": {field: [after, {"name": "second", "env": [HOST]}]}}


@pytest.mark.parametrize(
    "pod", [{}, {"spec": None}, {"spec": {"ephemeralContainers": [{}]}}, {"spec": {"containers": []}}]
)
def test_nothing_else_is_changed(pod: Any) -> None:
    assert mutated(mutation, pod) == pod


def test_a_container_that_is_none_is_an_error() -> None:
    with pytest.raises(Refusal) as refused:
        mutated(mutation, {"spec": {"containers": [{}, "x"]}})
    message = "unable to decode into Pod: Expected `object`, got `str` - at `$.spec.containers[1]`"
    assert refused.value.answer == Errored(400, message)


containers = several(record(name=words, env=several(record(name=one_of("A", "KUBERNETES_SERVICE_HOST"), value=words))))
some_pods = pods(record(), containers=containers, initContainers=containers, ephemeralContainers=containers)


@patiently
@given(some_pods | damaged(some_pods))
def test_it_behaves_well(obj: Any) -> None:
    touches = ["spec.containers[].env", "spec.initContainers[].env"]
    behaves_well(lambda pod: mutated(mutation, pod), obj, touches=touches)
