"""What a Seed reports while it is reconciled is what it reports with the original, but for what is listed here.

Recorded are all values of `lastOperation` of a fresh seed, from the start of the original gardenlet on: it fails at
first, and succeeds with its second try.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from agent.gardenlet.flow.graph import TaskFailure, Walk
from agent.gardenlet.flow.run import FlowFailed
from agent.gardenlet.seed.main.flows import RECONCILE
from agent.gardenlet.seed.main.rules import status
from config.gardenlet.schema import Resources
from gardener.api.garden import SEEDS
from kit.garden_objects import garden_object
from kube.clock import utc_now
from kube.objects import Object
from kube.runtime.controller import ReconcileError

_FILE = Path(__file__).parent / "gardenlet/seed-operations.jsonl"
RECORDED = list(map(json.loads, _FILE.read_text().splitlines()))
NOW = utc_now()
SEED: Object = garden_object(SEEDS)
SEED["metadata"] = {"name": "local", "generation": 1}

_NOT_BUILT = "the component is not built"
NOT_OURS: Mapping[str, str] = {
    "Deploying Vali": _NOT_BUILT,
    "Reconciling kube-apiserver ingress": _NOT_BUILT,
}
"""Names of tasks that are recorded -> why there are none such."""
NOT_RECORDED: Mapping[str, str] = {
    "Deploying VPA for gardenlet": "it is among those that failed",
    "Deploying cluster-autoscaler": "it takes less than the five seconds between two reports",
    "Deploying cluster-identity": "it takes less than the five seconds between two reports",
    "Deploying OpenTelemetry-related custom resource definitions": "they are of a later release",
    "Deploying extensions-related custom resource definitions": "it takes less than that",
    "Deploying machine-controller-manager": "it takes less than that",
    "Deploying nginx-ingress": "it takes less than that",
    "Deploying seed Prometheus": "it takes less than that",
    "Deploying system resources": "it takes less than that",
    "Renewing garden access secrets": "it was not requested",
    "Renewing garden kubeconfig": "it was not requested",
    "Renewing workload identity tokens": "it was not requested",
}
"""Names of our tasks -> why no description has them."""
OTHER_DESCRIPTIONS: Mapping[str, str] = {
    "": "when nothing runs any more, it is the names of what has failed",
    "Starting Seed reconciliation": "the first tasks start at once, and the first report comes later",
    "Seed reconciliation finished": "the write that ends the operation follows at once",
}
"""Recorded and not written, though the same flow has them."""


def _texts(state: str) -> list[str]:
    return [each["description"] for each in RECORDED if each["state"] == state]


def _initialized() -> Object:
    fields = status.begun(
        SEED,
        gardener={},
        kubernetes_version="",
        cluster_identity="",
        certificate_expires=None,
        resources=Resources(),
        now=NOW,
    )
    operation: Object = fields["lastOperation"]
    return operation


def test_an_operation_begins_and_ends_as_recorded() -> None:
    recorded = [(each["type"], each["progress"], each["description"]) for each in RECORDED]
    for ours in (_initialized(), status.succeeded(SEED, {}, is_repeated=False, now=NOW)["lastOperation"]):
        assert (ours["type"], ours["progress"], ours["description"]) in recorded


def test_tasks_are_called_as_recorded() -> None:
    listed = [each for each in _texts("Processing") if each not in OTHER_DESCRIPTIONS]
    recorded = {name for text in listed if text != _initialized()["description"] for name in text.split(", ")}
    ours = {task.name for task in RECONCILE.tasks.values()}
    assert recorded - ours == NOT_OURS.keys()
    assert ours - recorded == NOT_RECORDED.keys()


def test_the_flow_is_called_as_recorded() -> None:
    walk = Walk(RECONCILE)
    texts = {walk.snapshot().description}
    while tasks := walk.start():
        for task in tasks:
            walk.end(task)
    texts.add(walk.snapshot().description)
    assert texts == OTHER_DESCRIPTIONS.keys() - {""} <= set(_texts("Processing"))


def test_errors_are_listed_as_recorded() -> None:
    """Of a recorded error only the form: the tasks that failed wait for what they need here."""
    conflict, listed = _texts("Error")
    assert conflict.startswith("Operation cannot be fulfilled")  # which is another try here, and is not written
    head, *lines = listed.removesuffix("\n\n Operation will be retried.").split("\n")
    named = [line.removeprefix('\t* task "').partition('" failed: ') for line in lines]
    walk = Walk(RECONCILE)
    (task, *_) = walk.start()
    walk.end(task, TaskFailure(task.name, ReconcileError(), named[0][2]))
    ours = status.failed(SEED, {}, FlowFailed(walk.snapshot()).as_list, now=NOW)["lastOperation"]["description"]
    assert head == "4 errors occurred:"
    expected = f'1 error occurred:\n\t* task "{task.name}" failed: {named[0][2]}\n\n Operation will be retried.'
    assert ours == expected
