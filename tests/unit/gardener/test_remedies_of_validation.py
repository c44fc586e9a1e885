"""Of an error of validation, the field is named that is to be changed; where the text names none, there is no remedy.

`refusals.json` states an API server of Kubernetes 1.36 reports of some hundred wrong manifests, with the status.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gardener.managed_resource.remedies import remedy_of, with_remedy
from kube.errors import from_status

REFUSALS: dict[str, tuple[int, str]] = orjson.loads(Path(__file__).with_name("refusals.json").read_bytes())
RECORDED = Path(__file__).parents[2] / "conformance/managed_resources.jsonl.gz"
_APPLYING = re.compile(r'error during apply of object \\?"(?:[^"\\]+)\\?": ((?:[^"\\]|\\.)*)')
WITHOUT_FIELD = {"qty", "quota", "creationts"}
"""Of which an API server reports only what the value is not."""


def of_recorded_cases() -> Iterator[str]:
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            for found in _APPLYING.finditer(line):
                yield found[1].replace('\\"', '"').replace("\\\\", "\\")


@pytest.mark.parametrize(("status", "text"), [pytest.param(*each, id=name) for name, each in REFUSALS.items()])
def test_a_refusal_has_a_remedy_that_names_the_field_or_none(
    status: int, text: str, request: pytest.FixtureRequest
) -> None:
    shown = with_remedy(text, from_status(status, {"message": text}, fallback=""))
    remedy = shown.removeprefix(text).removeprefix("; ")
    assert "log" not in remedy
    if request.node.callspec.id in WITHOUT_FIELD:
        assert remedy == ""
    elif ": []: " in text:
        assert remedy == "divide the object"
    else:
        assert re.search(
            r"\b(?:metadata|spec|data|binaryData|type|rules|roleRef|immutable|webhooks|endpoints)\b", remedy
        )


def test_the_same_holds_for_recorded_cases() -> None:
    found = {text for text in of_recorded_cases() if "is invalid: " in text}
    assert found
    for text in found:
        fields = set(re.findall(r"(?:is invalid: \[?|, )([A-Za-z][\w.]*\w)[^:\s]*: (?:Inv|Req|Forb)", text))
        assert any(field in remedy_of(text) for field in fields), text


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("resourceVersion", "remove metadata.resourceVersion from the manifest"),
        ("upd-uid", "remove metadata.uid from the manifest, if set"),
        ("etp", "remove spec.externalTrafficPolicy, or set spec.type to NodePort or LoadBalancer"),
        ("nodeport-clusterip", "remove spec.ports[0].nodePort, or set spec.type to NodePort or LoadBalancer"),
        (
            "nodeport-dup",
            "remove spec.ports[1].nodePort to get a free one, or set one that no other port or Service has",
        ),
        (
            "hcnp",
            "remove spec.healthCheckNodePort, or set spec.type to LoadBalancer and spec.externalTrafficPolicy to Local",
        ),
        ("hc-taken-hc2", "remove spec.healthCheckNodePort to get a free port"),
        ("lbsr", "remove spec.loadBalancerSourceRanges, or set spec.type to LoadBalancer"),
        (
            "volmissing",
            "correct spec.template.spec.containers[0].volumeMounts[0].name: no object of the manifest has that name",
        ),
        ("noname-port", "add spec.ports[0].name, spec.ports[1].name"),
        ("sel", "give spec.template.metadata.labels all labels of spec.selector"),
        ("cmbig", "divide the object"),
        ("secretb64", "write data in base64, or plain text in stringData"),
        ("env", "correct the type of spec.template.spec.containers.env.value"),
    ],
)
def test_it_reports_what_to_change_in_the_manifest(name: str, remedy: str) -> None:
    assert remedy_of(REFUSALS[name][1]).startswith(remedy)


def test_other_words_of_duplicate_node_ports() -> None:
    text = 'Service "s" is invalid: spec.ports[1].nodePort: Invalid value: 30080: duplicate nodePort'
    assert remedy_of(text).startswith("remove spec.ports[1].nodePort")
    assert remedy_of("duplicate nodePort: 30080").startswith("remove spec.ports[*].nodePort")


def test_what_a_value_quotes_is_no_field() -> None:
    text = 'ConfigMap "c" is invalid: metadata.labels: Invalid value: "x, spec.fake: Required value": no'
    assert remedy_of(text) == "correct metadata.labels"
