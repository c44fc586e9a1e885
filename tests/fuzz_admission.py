"""Fuzzes all webhooks, guided by coverage: `python tests/fuzz_admission.py SECONDS`. Needs `pip install atheris`.

It begins with the recorded admission requests. Whatever comes in, the answer has to be an AdmissionReview with a code,
and no handler may crash; the first input that breaks this is kept in a file and ends the run.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path

import atheris

_TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(_TESTS), str(_TESTS / "unit" / "webhooks")]

with atheris.instrument_imports(include=["webhooks", "kube.validation", "kube.objects", "kube.names"]):
    from mutating import at_once, facts_of

    from config.load import decode
    from webhooks.metrics import panics
    from webhooks.routes import enabled, routes

CONFIG = """
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
_FILE = _TESTS / "conformance" / "admission.jsonl.gz"


_in_cluster, *_recorded = (json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).splitlines())

_config = decode(CONFIG).config
_facts = facts_of(_config.webhooks, *_in_cluster)
_endpoints = list(enabled(routes(_config, _facts)).items())


def fuzz(data: bytes) -> None:
    """The first byte chooses the webhook, the rest is the body."""
    if not data:
        return
    _, endpoint = _endpoints[data[0] % len(_endpoints)]
    answer = at_once(endpoint(data[1:], "application/json"))
    if b"no running event loop" in answer:  # it would wait for a namespace that is not known
        panics._value.set(0)
        return
    response = json.loads(answer)["response"]
    code = response["status"]["code"]
    assert isinstance(code, int)
    assert response["allowed"] is (code == 200)
    assert panics._value.get() == 0, answer


def main() -> None:
    seconds = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as corpus:
        paths = [path for path, _ in _endpoints]
        for number, case in enumerate(_recorded):
            if case["path"] in paths:
                body = json.dumps(case["review"], separators=(",", ":")).encode()
                (Path(corpus) / str(number)).write_bytes(bytes([paths.index(case["path"])]) + body)
        atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=8192", "-timeout=20", corpus], fuzz)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
