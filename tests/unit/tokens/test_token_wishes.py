"""What Secrets ask for in their annotations, and what is wrong with some of them."""

import pytest

from agent.token_requestor import keys
from agent.token_requestor.wish import InvalidSecretError, Wish, read_wish
from kube.objects import Key

MINIMAL = {keys.NAME: "x", keys.NAMESPACE: "kube-system"}
TARGET = {keys.TARGET_NAME: "t", keys.TARGET_NAMESPACE: "n"}


def wish(**changes: object) -> Wish:
    fields: dict[str, object] = {
        "account": Key("kube-system", "x"),
        "labels": {},
        "seconds": 43_200,
        "target": None,
        "wants_authority": False,
    }
    return Wish(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, wish()),
        ({keys.LABELS: ""}, wish()),
        ({keys.LABELS: "null"}, wish()),
        ({keys.LABELS: "{}"}, wish()),
        ({keys.LABELS: '{"team":"a","c.example.com/d":"e"}'}, wish(labels={"team": "a", "c.example.com/d": "e"})),
        ({keys.LABELS: '{"team":null}'}, wish(labels={"team": ""})),
        ({keys.EXPIRATION: "10m"}, wish(seconds=600)),
        ({keys.EXPIRATION: "1h30m"}, wish(seconds=5400)),
        ({keys.EXPIRATION: "1.5h"}, wish(seconds=5400)),
        ({keys.EXPIRATION: "600.9s"}, wish(seconds=600)),
        ({keys.EXPIRATION: "100h"}, wish(seconds=360_000)),
        (TARGET, wish(target=Key("n", "t"))),
        ({keys.TARGET_NAME: "t"}, wish()),
        ({keys.TARGET_NAMESPACE: "n", keys.TARGET_NAME: ""}, wish()),
        ({keys.INJECT_CA_BUNDLE: "true"}, wish(wants_authority=True)),
        ({keys.INJECT_CA_BUNDLE: "T"}, wish(wants_authority=True)),
        ({keys.INJECT_CA_BUNDLE: "yes"}, wish()),
        ({keys.RENEW_TIMESTAMP: "soon"}, wish()),
    ],
)
def test_annotations_say_what_is_wanted(annotations: dict[str, str], wanted: Wish) -> None:
    assert read_wish({**MINIMAL, **annotations}) == wanted


def test_a_fixed_namespace_replaces_the_annotated_one() -> None:
    assert read_wish(MINIMAL, namespace="fixed").account == Key("fixed", "x")
    assert read_wish({keys.NAME: "x"}, namespace="fixed").account == Key("fixed", "x")


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({keys.NAME: ""}, f'the annotation "{keys.NAME}" is missing'),
        ({keys.NAMESPACE: ""}, f'the annotation "{keys.NAMESPACE}" is missing'),
        ({keys.NAME: "A"}, f'the annotation "{keys.NAME}" is invalid ("A"): a lowercase RFC 1123 subdomain'),
        ({keys.NAMESPACE: "A"}, f'the annotation "{keys.NAMESPACE}" is invalid ("A"): a lowercase RFC 1123 label'),
        (
            {keys.LABELS: '["a"]'},
            f'failed unmarshalling service account labels from secret annotation "{keys.LABELS}" (["a"]): ',
        ),
        (
            {keys.LABELS: "{"},
            f'failed unmarshalling service account labels from secret annotation "{keys.LABELS}" ({{): ',
        ),
        ({keys.LABELS: '{"a":1}'}, "failed unmarshalling service account labels"),
        ({keys.LABELS: '{"a b":"c"}'}, "Invalid value"),
        ({keys.EXPIRATION: "soon"}, 'time: invalid duration "soon"'),
        ({keys.EXPIRATION: ""}, 'time: invalid duration ""'),
        ({keys.EXPIRATION: "1d"}, 'time: unknown unit "d" in duration "1d"'),
        ({keys.EXPIRATION: "90s"}, "no token is valid for less than 10m"),
        ({keys.EXPIRATION: "599.9s"}, "no token is valid for less than 10m"),
        ({keys.EXPIRATION: "2000000h"}, "must not be more than 4294967296s"),
        ({**TARGET, keys.TARGET_NAME: "T"}, f'the annotation "{keys.TARGET_NAME}" is invalid'),
        ({**TARGET, keys.TARGET_NAMESPACE: "N"}, f'the annotation "{keys.TARGET_NAMESPACE}" is invalid'),
    ],
)
def test_what_is_wrong_is_told(annotations: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSecretError) as raised:
        read_wish({**MINIMAL, **annotations})
    assert message in str(raised.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidSecretError) as raised:
        read_wish({keys.EXPIRATION: "x", keys.LABELS: "x"})
    assert all(name in str(raised.value) for name in (keys.NAME, keys.NAMESPACE, keys.EXPIRATION, keys.LABELS))
