from typing import Any

import pytest

from config.resource_manager.webhooks import KubernetesServiceHost
from kit.webhooks.mutating import NO_STATE, mutated, one_of, pods, record, refusal, several, well_behaved, words
from webhooks.admission import Errored
from webhooks.handlers import kubernetes_service_host

mutation = kubernetes_service_host.mutation(KubernetesServiceHost(enabled=True, host="api.example.com"), NO_STATE)
HOST = {"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}
REFERENCE = {"name": "KUBERNETES_SERVICE_HOST", "valueFrom": {}}
PORT = {"name": "KUBERNETES_SERVICE_PORT", "value": "1"}
OTHER = {"name": "A", "value": "b"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, [HOST], id="no env"),
        pytest.param({"env": None}, [HOST], id="null env"),
        pytest.param({"env": [OTHER]}, [OTHER, HOST], id="at the end"),
        pytest.param({"env": [{**HOST, "value": ""}]}, [{**HOST, "value": ""}], id="an empty value stays"),
        pytest.param({"env": [REFERENCE]}, [REFERENCE], id="a reference stays"),
        pytest.param({"env": [PORT]}, [PORT, HOST], id="the port does not matter"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_without_the_variable_get_it(field: str, before: Any, after: Any) -> None:
    second = {"name": "second", "env": [HOST]}
    assert mutated(mutation, {"spec": {field: [before, second]}}) == {"spec": {field: [{"env": after}, second]}}


@pytest.mark.parametrize(
    "pod", [{}, {"spec": None}, {"spec": {"ephemeralContainers": [{}]}}, {"spec": {"containers": []}}]
)
def test_nothing_else_is_changed(pod: Any) -> None:
    assert mutated(mutation, pod) == pod


def test_a_container_that_is_none_is_an_error() -> None:
    message = "unable to decode into Pod: Expected `object`, got `str` - at `$.spec.containers[1]`"
    assert refusal(mutation, {"spec": {"containers": [{}, "x"]}}) == Errored(400, message)


containers = several(record(name=words, env=several(record(name=one_of("A", "KUBERNETES_SERVICE_HOST"), value=words))))
some_pods = pods(record(), containers=containers, initContainers=containers, ephemeralContainers=containers)

test_it_behaves_well = well_behaved(mutation, some_pods, touches=["spec.containers[].env", "spec.initContainers[].env"])
