"""Rules for names, label names and label values, with the messages of the Kubernetes API server.

Each function returns the problems of a value: an empty list means that it is valid.
"""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_RULE = f"a valid label must be an empty string or {_QUALIFIED_RULE.removeprefix('must ')}"


def dns_label_problems(value: str) -> list[str]:
    """Problems of a value as a DNS-1123 label: the name of a namespace, for example."""
    problems = _length(value, 63)
    if re.fullmatch(_LABEL, value):
        return problems
    if re.fullmatch(_SUBDOMAIN, value):
        return [*problems, "must not contain dots"]
    return [*problems, _explain(_LABEL_RULE, _LABEL, "my-name", "123-abc")]


def dns_subdomain_problems(value: str) -> list[str]:
    """Problems of a value as a DNS-1123 subdomain: the name of most kinds of objects."""
    return _length(value, 253) + _shape(value, _SUBDOMAIN, _SUBDOMAIN_RULE, "example.com")


def label_name_problems(value: str) -> list[str]:
    """Problems of a value as the name of a label or annotation: `[prefix/]name`."""
    examples = ("MyName", "my.name", "123-abc")
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        rule = _explain(_QUALIFIED_RULE, _QUALIFIED, *examples)
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {rule} {optional}"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain_problems(prefix)]
    lengths = _length(name, 63) if name else ["must be non-empty"]
    shapes = _shape(name, _QUALIFIED, _QUALIFIED_RULE, *examples)
    return problems + [f"name part {problem}" for problem in lengths + shapes]


def label_value_problems(value: str) -> list[str]:
    examples = ("MyValue", "my_value", "12345")
    return _length(value, 63) + _shape(value, _LABEL_VALUE, _LABEL_VALUE_RULE, *examples)


def _length(value: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(value) > most else []


def _shape(value: str, pattern: str, rule: str, *examples: str) -> list[str]:
    return [] if re.fullmatch(pattern, value) else [_explain(rule, pattern, *examples)]


def _explain(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
