"""Names, labels, selectors and tolerations by the rules of Kubernetes, with its messages."""

from typing import Any

import pytest

from kube.names import dns_label_problems, dns_subdomain_problems, label_name_problems, label_value_problems
from kube.validation import label_errors, label_selector_errors, shown, toleration_errors

DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DNS_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("value", ["a", "0", "a-b", "a" * 63])
def test_names_of_namespaces_that_are_valid(value: str) -> None:
    assert dns_label_problems(value) == dns_subdomain_problems(value) == []


@pytest.mark.parametrize("value", ["", "A", "-a", "a-", "a_b", "a..b", "a\n", "é"])
def test_names_of_namespaces_that_are_malformed(value: str) -> None:
    assert dns_label_problems(value) == [DNS_LABEL]


def test_what_would_be_a_label_without_its_dots_is_reported_to_have_dots() -> None:
    assert dns_label_problems("a.b") == ["must not contain dots"]


def test_a_name_may_be_too_long_and_malformed() -> None:
    assert dns_label_problems("a" * 64) == ["must be no more than 63 characters"]
    assert dns_label_problems("A" * 64) == ["must be no more than 63 characters", DNS_LABEL]
    assert dns_subdomain_problems("a" * 254) == ["must be no more than 253 characters"]


@pytest.mark.parametrize(("value", "problems"), [("a.b-c.d", []), ("a..b", [DNS_SUBDOMAIN]), (".", [DNS_SUBDOMAIN])])
def test_names_of_objects(value: str, problems: list[str]) -> None:
    assert dns_subdomain_problems(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("a", []),
        ("A_b.c-1", []),
        ("example.com/A", []),
        ("a" * 63, []),
        ("", ["name part must be non-empty", f"name part {NAME}"]),
        ("a b", [f"name part {NAME}"]),
        ("a" * 64, ["name part must be no more than 63 characters"]),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", f"name part {NAME}"]),
        ("A/b", [f"prefix part {DNS_SUBDOMAIN}"]),
        ("a/b/c", [f"a qualified name {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]),
    ],
)  # fmt: skip
def test_names_of_labels(value: str, problems: list[str]) -> None:
    assert label_name_problems(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [("", []), ("A_b.c-1", []), ("-a", [VALUE]), ("a b", [VALUE]), ("a" * 64, ["must be no more than 63 characters"])],
)
def test_values_of_labels(value: str, problems: list[str]) -> None:
    assert label_value_problems(value) == problems


@pytest.mark.parametrize(
    ("value", "text"), [('a"é', '"a\\"é"'), (1, "1"), (2.0, "2"), (0.5, "0.5"), (True, "true"), (None, "null")]
)
def test_values_in_errors_look_as_go_prints_them(value: Any, text: str) -> None:
    assert shown(value) == text


def test_labels_are_checked_at_the_path_of_the_map() -> None:
    errors = list(map(str, label_errors("p", {"a": "b", "": "x y"})))
    assert errors == [
        'p: Invalid value: "": name part must be non-empty',
        f'p: Invalid value: "": name part {NAME}',
        f'p: Invalid value: "x y": {VALUE}',
    ]


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        ({}, []),
        ({"matchLabels": None, "matchExpressions": None}, []),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, []),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]}, []),
        ({"matchLabels": {"a": "-"}}, [f'p.matchLabels: Invalid value: "-": {VALUE}']),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn"}]},
         ["p.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
         ["p.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a"}]},
         ['p.matchExpressions[1].operator: Invalid value: "": not a valid selector operator']),
        ({"matchExpressions": [{"key": "-", "operator": "In", "values": ["a", "-"]}]},
         [f'p.matchExpressions[0].key: Invalid value: "-": name part {NAME}',
          f'p.matchExpressions[0].values[1]: Invalid value: "-": {VALUE}']),
    ],
)  # fmt: skip
def test_label_selectors(selector: dict[str, Any], errors: list[str]) -> None:
    assert list(map(str, label_selector_errors("p", selector))) == errors


@pytest.mark.parametrize(
    ("toleration", "errors"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "a", "value": "b"}, []),
        ({"key": "a", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 0}, []),
        ({"key": "a", "effect": "PreferNoSchedule"}, []),
        ({"key": "-"}, [f'p.key: Invalid value: "-": name part {NAME}']),
        ({}, [('p.operator: Invalid value: "": operator must be Exists when `key` is empty, which means '
              '"match all values and all keys"')]),
        ({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
         ['p.effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set']),
        ({"key": "a", "tolerationSeconds": 1},
         ['p.effect: Invalid value: "": effect must be \'NoExecute\' when `tolerationSeconds` is set']),
        ({"key": "a", "value": "-"}, [f'p.operator: Invalid value: "-": {VALUE}']),
        ({"key": "a", "operator": "Exists", "value": "b"},
         ['p.operator: Invalid value: "b": value must be empty when `operator` is \'Exists\'']),
        ({"key": "a", "operator": "Lt"}, ['p.operator: Unsupported value: "Lt": supported values: "Equal", "Exists"']),
        ({"key": "a", "effect": "no"},
         ['p.effect: Unsupported value: "no": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"']),
    ],
)  # fmt: skip
def test_tolerations(toleration: dict[str, Any], errors: list[str]) -> None:
    assert list(map(str, toleration_errors("p", toleration))) == errors
