"""Admission requests are answered as the original answers them: recorded requests, in the cluster they were made for.

The first line of `admission.jsonl.gz` is what is in the cluster, each further one a request and what two releases of
the original answered, `seed` and `newest`. Where the two differ, each webhook follows one of them in all its answers.

Compared are the verdict, its code, and the object that comes out: without the order of tolerations, and without empty
values, which the original adds as it reads and writes objects. Of validations the fields and kinds of errors must be
the same; the wording differs from release to release.
"""

import asyncio
import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from devcluster.cluster import Cluster
from kit.processes.webhooks import WebhookProcess, ask, client
from kube.objects import Object

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test requests all

WEBHOOKS: dict[str, Any] = {
    "crdDeletionProtection": {"enabled": True},
    "extensionValidation": {"enabled": True},
    "highAvailabilityConfig": {"enabled": True},
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "podTopologySpreadConstraints": {"enabled": True},
    "projectedTokenMount": {"enabled": True, "expirationSeconds": 43200},
    "seccompProfile": {"enabled": True},
    "systemComponentsConfig": {
        "enabled": True,
        "nodeSelector": {"worker.gardener.cloud/system-components": "true"},
        "podNodeSelector": {"worker.gardener.cloud/system-components": "true"},
    },
}
FOLLOWED = {
    **dict.fromkeys(("crd-deletion-protection", "high-availability-config", "kubernetes-service-host"), "seed"),
    **dict.fromkeys(("extension-validation", "pod-topology-spread-constraints"), "newest"),
    **dict.fromkeys(("projected-token-mount", "seccomp-profile", "system-components-config"), "seed"),
}
_PLURALS = {
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
}
_ERROR = re.compile(
    r"([A-Za-z][\w.\[\]]*): (Required value|Invalid value|Forbidden|Unsupported value|Duplicate value|Not found|Too many)"
)
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    webhook: str
    path: str
    review: Object
    expect: dict[str, Object]
    """By release."""


def _load() -> tuple[list[Object], list[Case]]:
    with gzip.open(Path(__file__).with_name("admission.jsonl.gz"), "rt") as lines:
        context = json.loads(next(lines))
        return context, [Case(**json.loads(line)) for line in lines]


CONTEXT, CASES = _load()


@pytest.fixture(scope="module")
def prepared() -> Iterator[Cluster]:
    with Cluster(nodes=3) as cluster:
        for obj in sorted(CONTEXT, key=lambda obj: obj["kind"] != "Namespace"):
            path = _PLURALS[obj["kind"]].format(obj["metadata"].get("namespace", ""))
            cluster.api.create(path, obj)
        yield cluster


@pytest.fixture(scope="module")
def answers(prepared: Cluster) -> dict[str, Object]:
    """By the id of the case."""
    return _ask(prepared, WEBHOOKS, CASES)


@pytest.fixture(scope="module")
def latest_answers(prepared: Cluster) -> dict[str, Object]:
    """Of the one webhook whose releases can be chosen."""
    chosen = {"highAvailabilityConfig": {"enabled": True, "behavior": "latest"}}
    return _ask(prepared, chosen, [case for case in CASES if case.webhook == "high-availability-config"])


def _ask(cluster: Cluster, webhooks: dict[str, Any], cases: list[Case]) -> dict[str, Object]:
    async def ask_all(server: WebhookProcess) -> dict[str, Object]:
        turns = asyncio.Semaphore(_AT_ONCE)
        async with client() as session:

            async def one(case: Case) -> Object:
                async with turns:
                    return await ask(session, server.url + case.path, json.dumps(case.review).encode())

            return dict(zip((c.id for c in cases), await asyncio.gather(*map(one, cases)), strict=True))

    with WebhookProcess(webhooks, kubeconfig=cluster.kubeconfig) as server:
        server.wait_until_ready()
        return asyncio.run(ask_all(server))


def essence(value: Any) -> Any:
    """Without what is empty or in no order."""
    if isinstance(value, dict):
        found = {name: essence(member) for name, member in value.items() if name != "creationTimestamp"}
        if isinstance(found.get("tolerations"), list):
            found["tolerations"] = sorted(found["tolerations"], key=lambda each: sorted(each.items(), key=str))
        return {name: member for name, member in found.items() if member not in (None, "", [], {})}
    return [essence(member) for member in value] if isinstance(value, list) else value


def errors(message: str) -> set[tuple[str, str]]:
    """The fields that a validation names, and what is wrong with them."""
    return {(field, kind) for field, kind in _ERROR.findall(message)}


def of_response(case: Case, response: Object) -> Object:
    """An answer in the form of the recorded ones."""
    status = response.get("status") or {}
    obj = case.review["request"].get("object")
    judged = {"allowed": response["allowed"], "code": status.get("code", 200), "message": status.get("message", "")}
    if response["allowed"] and obj is not None:
        operations = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        judged["object"] = jsonpatch.apply_patch(obj, operations)
    return judged


def compared(case: Case, answer: Object) -> Object:
    found = {name: answer.get(name) for name in ("http", "allowed", "code")}
    found["object"] = essence(answer.get("object"))
    if case.webhook == "extension-validation":
        found["errors"] = errors(answer.get("message", ""))
    return found


def mismatches(webhook: str, release: str, answers: dict[str, Object]) -> list[tuple[str, Object, Object]]:
    cases = [case for case in CASES if case.webhook == webhook]
    assert cases
    pairs = (
        (case.id, compared(case, of_response(case, answers[case.id])), compared(case, case.expect[release]))
        for case in cases
    )
    return [pair for pair in pairs if pair[1] != pair[2]]


def test_every_webhook_of_the_recording_is_judged() -> None:
    assert {case.webhook for case in CASES} == FOLLOWED.keys()


@pytest.mark.parametrize("webhook", FOLLOWED)
def test_a_webhook_answers_as_the_release_that_it_follows(webhook: str, answers: dict[str, Object]) -> None:
    assert mismatches(webhook, FOLLOWED[webhook], answers) == []


def test_high_availability_config_answers_as_the_newest_release_if_told_to(latest_answers: dict[str, Object]) -> None:
    assert mismatches("high-availability-config", "newest", latest_answers) == []


def test_validations_use_the_words_of_the_original(answers: dict[str, Object]) -> None:
    cases = [case for case in CASES if case.webhook == "extension-validation"]
    different = [
        (case.id, message)
        for case in cases
        if (message := answers[case.id]["status"].get("message", "")) != case.expect["newest"]["message"]
    ]
    assert different == []
