"""Request for a token in the annotations of a Secret.

Everything that the annotations alone decide is checked here, so that no request is sent that would be refused. All
problems are reported at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from gardener import keys
from kube.clock import parse_duration
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import Key, is_truthy
from kube.validation import label_errors

ACCOUNT_ANNOTATIONS = (keys.SERVICE_ACCOUNT_NAME, keys.SERVICE_ACCOUNT_NAMESPACE, keys.SERVICE_ACCOUNT_LABELS)
"""Annotations that describe the ServiceAccount."""
DEFAULT_SECONDS = 12 * 3600
LEAST_SECONDS = 600
"""Minimum lifetime that the API server accepts in a request."""
MOST_SECONDS = 1 << 32


class InvalidSecretError(Exception):
    """Only a change of the Secret helps; the message is for its author and holds no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpec:
    account: Key
    labels: Mapping[str, str]
    """Labels of the ServiceAccount."""
    seconds: int
    """Requested lifetime of the token."""
    target: Key | None
    """Secret in the target cluster for the token; None for the source Secret itself."""
    wants_authority: bool
    """Whether the CA of the target cluster is stored with the token."""


def parse_token_spec(annotations: Mapping[str, str], *, namespace: str | None = None) -> TokenSpec:
    """Parse the annotations; a `namespace` is that of all ServiceAccounts, and overrides the annotation.

    Raises:
        InvalidSecretError: with all problems.
    """
    problems: list[str] = []
    name = annotations.get(keys.SERVICE_ACCOUNT_NAME) or ""
    problems += _name_problems(keys.SERVICE_ACCOUNT_NAME, name, dns_subdomain_problems(name))
    if namespace is None:
        namespace = annotations.get(keys.SERVICE_ACCOUNT_NAMESPACE) or ""
        problems += _name_problems(keys.SERVICE_ACCOUNT_NAMESPACE, namespace, dns_label_problems(namespace))
    labels: Mapping[str, str] = {}
    seconds = DEFAULT_SECONDS
    try:
        labels = _labels(annotations.get(keys.SERVICE_ACCOUNT_LABELS) or "")
    except ValueError as error:
        problems.append(str(error))
    try:
        seconds = _seconds(annotations.get(keys.TOKEN_EXPIRATION_DURATION))
    except ValueError as error:
        problems.append(str(error))
    target, target_problems = _target(annotations)
    problems += target_problems
    if problems:
        raise InvalidSecretError("; ".join(problems))
    return TokenSpec(
        account=Key(namespace, name),
        labels=labels,
        seconds=seconds,
        target=target,
        wants_authority=is_truthy(annotations.get(keys.INJECT_CA_BUNDLE)),
    )


def _name_problems(annotation: str, value: str, problems: list[str]) -> list[str]:
    if not value:
        return [f'the annotation "{annotation}" is missing; set it to the ServiceAccount of the token']
    return [f'the annotation "{annotation}" is invalid ("{value}"): {problem}' for problem in problems]


def _labels(text: str) -> Mapping[str, str]:
    if not text:
        return {}
    prefix = (
        f'failed unmarshalling service account labels from secret annotation "{keys.SERVICE_ACCOUNT_LABELS}" ({text})'
    )
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{prefix}: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(value is None or isinstance(value, str) for value in found.values()):
        raise ValueError(f'{prefix}: must be a JSON object of strings, like {{"key":"value"}}')
    labels = {name: value or "" for name, value in found.items()}
    if wrong := next(label_errors("labels", labels), None):
        raise ValueError(f"{prefix}: {wrong}")
    return labels


def _seconds(text: str | None) -> int:
    if text is None:
        return DEFAULT_SECONDS
    where = f'the annotation "{keys.TOKEN_EXPIRATION_DURATION}" is invalid'
    try:
        seconds = int(parse_duration(text))
    except ValueError as error:
        raise ValueError(f"{where}: {error}; write a duration like 90m or 12h") from error
    if seconds < LEAST_SECONDS:
        raise ValueError(f'{where} ("{text}"): must be at least 10m')
    if seconds > MOST_SECONDS:
        raise ValueError(f'{where} ("{text}"): must not be more than {MOST_SECONDS}s')
    return seconds


def _target(annotations: Mapping[str, str]) -> tuple[Key | None, list[str]]:
    name, namespace = (
        annotations.get(keys.TARGET_SECRET_NAME) or "",
        annotations.get(keys.TARGET_SECRET_NAMESPACE) or "",
    )
    if not name or not namespace:
        return None, []  # one alone does not count
    problems = _name_problems(keys.TARGET_SECRET_NAME, name, dns_subdomain_problems(name))
    problems += _name_problems(keys.TARGET_SECRET_NAMESPACE, namespace, dns_label_problems(namespace))
    return Key(namespace, name), problems
