"""What Secrets ask for in their annotations, and what is wrong with some of them."""

import pytest

from agent.shared.token_requestor.rules.token_spec import InvalidSecretError, TokenSpec, parse_token_spec
from gardener import keys
from kube.objects import Key

MINIMAL = {keys.SERVICE_ACCOUNT_NAME: "x", keys.SERVICE_ACCOUNT_NAMESPACE: "kube-system"}
TARGET = {keys.TARGET_SECRET_NAME: "t", keys.TARGET_SECRET_NAMESPACE: "n"}


def spec(**changes: object) -> TokenSpec:
    fields = {"labels": {}, "seconds": 43_200, "target": None, "wants_authority": False}
    return TokenSpec(account=Key("kube-system", "x"), **{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, spec()),
        ({keys.SERVICE_ACCOUNT_LABELS: ""}, spec()),
        ({keys.SERVICE_ACCOUNT_LABELS: "null"}, spec()),
        ({keys.SERVICE_ACCOUNT_LABELS: "{}"}, spec()),
        ({keys.SERVICE_ACCOUNT_LABELS: '{"team":"a","b/d":"e"}'}, spec(labels={"team": "a", "b/d": "e"})),
        ({keys.SERVICE_ACCOUNT_LABELS: '{"team":null}'}, spec(labels={"team": ""})),
        ({keys.TOKEN_EXPIRATION_DURATION: "10m"}, spec(seconds=600)),
        ({keys.TOKEN_EXPIRATION_DURATION: "1h30m"}, spec(seconds=5400)),
        ({keys.TOKEN_EXPIRATION_DURATION: "1.5h"}, spec(seconds=5400)),
        ({keys.TOKEN_EXPIRATION_DURATION: "600.9s"}, spec(seconds=600)),
        ({keys.TOKEN_EXPIRATION_DURATION: "100h"}, spec(seconds=360_000)),
        (TARGET, spec(target=Key("n", "t"))),
        ({keys.TARGET_SECRET_NAME: "t"}, spec()),
        ({keys.TARGET_SECRET_NAMESPACE: "n", keys.TARGET_SECRET_NAME: ""}, spec()),
        ({keys.INJECT_CA_BUNDLE: "true"}, spec(wants_authority=True)),
        ({keys.INJECT_CA_BUNDLE: "T"}, spec(wants_authority=True)),
        ({keys.INJECT_CA_BUNDLE: "yes"}, spec()),
        ({keys.TOKEN_RENEW_TIMESTAMP: "soon"}, spec()),
    ],
)
def test_annotations_state_what_is_wanted(annotations: dict[str, str], wanted: TokenSpec) -> None:
    assert parse_token_spec({**MINIMAL, **annotations}) == wanted


def test_a_fixed_namespace_replaces_the_annotated_one() -> None:
    assert parse_token_spec(MINIMAL, namespace="fixed").account == Key("fixed", "x")
    assert parse_token_spec({keys.SERVICE_ACCOUNT_NAME: "x"}, namespace="fixed").account == Key("fixed", "x")


NO_LABELS = f'failed unmarshalling service account labels from secret annotation "{keys.SERVICE_ACCOUNT_LABELS}"'


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({keys.SERVICE_ACCOUNT_NAME: ""}, f'the annotation "{keys.SERVICE_ACCOUNT_NAME}" is missing'),
        ({keys.SERVICE_ACCOUNT_NAMESPACE: ""}, f'the annotation "{keys.SERVICE_ACCOUNT_NAMESPACE}" is missing'),
        *(
            ({key: "A"}, f'the annotation "{key}" is invalid ("A"): a lowercase RFC 1123 {what}')
            for key, what in ((keys.SERVICE_ACCOUNT_NAME, "subdomain"), (keys.SERVICE_ACCOUNT_NAMESPACE, "label"))
        ),
        *(({keys.SERVICE_ACCOUNT_LABELS: text}, f"{NO_LABELS} ({text}): ") for text in ('["a"]', "{")),
        ({keys.SERVICE_ACCOUNT_LABELS: '{"a":1}'}, "failed unmarshalling service account labels"),
        ({keys.SERVICE_ACCOUNT_LABELS: '{"a b":"c"}'}, "Invalid value"),
        ({keys.TOKEN_EXPIRATION_DURATION: "soon"}, 'time: invalid duration "soon"'),
        ({keys.TOKEN_EXPIRATION_DURATION: ""}, 'time: invalid duration ""'),
        ({keys.TOKEN_EXPIRATION_DURATION: "1d"}, 'time: unknown unit "d" in duration "1d"'),
        ({keys.TOKEN_EXPIRATION_DURATION: "90s"}, "must be at least 10m"),
        ({keys.TOKEN_EXPIRATION_DURATION: "599.9s"}, "must be at least 10m"),
        ({keys.TOKEN_EXPIRATION_DURATION: "2000000h"}, "must not be more than 4294967296s"),
        ({**TARGET, keys.TARGET_SECRET_NAME: "T"}, f'the annotation "{keys.TARGET_SECRET_NAME}" is invalid'),
        ({**TARGET, keys.TARGET_SECRET_NAMESPACE: "N"}, f'the annotation "{keys.TARGET_SECRET_NAMESPACE}" is invalid'),
    ],
)
def test_what_is_wrong_is_reported(annotations: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSecretError) as raised:
        parse_token_spec({**MINIMAL, **annotations})
    assert message in str(raised.value)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    given = {keys.TOKEN_EXPIRATION_DURATION: "x", keys.SERVICE_ACCOUNT_LABELS: "x"}
    with pytest.raises(InvalidSecretError) as raised:
        parse_token_spec(given)
    assert all(name in str(raised.value) for name in (*MINIMAL, *given))
