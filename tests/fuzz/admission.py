"""All webhooks: whatever comes in, the answer is an AdmissionReview with a code, and no handler crashes.

A patch applies, and does not change its own result again. The code is never 500, which is for mistakes of the server.

The first byte chooses the webhook, the rest is the body. To begin with there are the recorded requests, and some with
millions of values.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import jsonpatch

from config.resource_manager import decode
from fuzz import driver
from kit.webhooks.mutating import at_once, state_of
from kube.objects import Object
from webhooks.metrics import panics
from webhooks.routes import enabled, routes

_TESTS = Path(__file__).resolve().parents[1]

_CONFIG = """
leaderElection: {resourceNamespace: fuzz}
controllers: {tokenInvalidator: {enabled: true}}
webhooks:
  endpointSliceHints: {enabled: true}
  extensionValidation: {enabled: true}
  highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 60}
  kubernetesServiceHost: {enabled: true, host: api.example.com}
  podKubeAPIServerLoadBalancing: {enabled: true}
  podSchedulerName: {enabled: true, schedulerName: s}
  podTopologySpreadConstraints: {enabled: true}
  projectedTokenMount: {enabled: true}
  seccompProfile: {enabled: true}
  systemComponentsConfig: {enabled: true, podNodeSelector: {a: b}}
  tokenInvalidator: {enabled: true}
  vpaInPlaceUpdates: {enabled: true}
"""
_RECORDED = _TESTS / "conformance" / "admission.jsonl.gz"

_in_cluster, *_cases = (json.loads(line) for line in gzip.decompress(_RECORDED.read_bytes()).splitlines())
_config = decode(_CONFIG).config
_endpoints = list(enabled(routes(_config, state_of(*_in_cluster))).items())


def seeds() -> Iterator[bytes]:
    paths = [path for path, _ in _endpoints]
    for case in _cases:
        if case["path"] in paths:
            body = json.dumps(case["review"], separators=(",", ":")).encode()
            yield bytes([paths.index(case["path"])]) + body
    for index in range(len(paths)):
        before = b'{"request":{"operation":"CREATE","object":{"spec":{"containers":['
        several = driver.millions(bytes([index]) + before, b"{}]}}}}")
        yield several[index % len(several)]


def target(data: bytes) -> None:
    if not data:
        return
    path, _ = _endpoints[data[0] % len(_endpoints)]
    ask(path, driver.unfolded(data[1:]))


def reviews() -> Iterator[tuple[str, Object]]:
    """The recorded ones, by the path of the webhook."""
    return ((case["path"], case["review"]) for case in _cases if case["path"] in dict(_endpoints))


def ask(path: str, body: bytes) -> None:
    response = _response(path, body)
    if response is None or not response.get("patch"):
        return
    review = json.loads(body)
    after = jsonpatch.apply_patch(review["request"]["object"], json.loads(base64.b64decode(response["patch"])))
    review["request"]["object"] = after
    again = _response(path, json.dumps(review).encode())
    assert again is not None
    assert again["allowed"], again
    if again.get("patch"):
        assert jsonpatch.apply_patch(after, json.loads(base64.b64decode(again["patch"]))) == after, again


def _response(path: str, body: bytes) -> Object | None:
    """None: it would wait for a namespace that is not known."""
    before = panics._value.get()
    answer = at_once(dict(_endpoints)[path](body, "application/json"))
    if b"no running event loop" in answer:
        return None
    response: Object = json.loads(answer)["response"]
    code = response["status"]["code"]
    assert isinstance(code, int)
    assert response["allowed"] is (code == 200)
    assert code != 500, answer
    assert panics._value.get() == before, answer
    return response
