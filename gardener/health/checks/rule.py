"""Common parts of the rules of all kinds.

A check reads as a chain of conditions to meet; the first that is not met is the answer:

    outdated(obj) or required_condition(obj, "Available", "True") or ...

Custom resources may come without a schema, so fields are read through functions that check the type. A missing or
null field has the zero value, as in the API types; a field of the wrong type raises `Malformed`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube.objects import Object

Check = Callable[[Object], str | None]


CAUSE = "; cause: "
"""Separator between the problem of an object and its cause in the words of others."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The health and the progress of objects of one kind."""

    group: str
    kind: str
    health: Check
    versions: tuple[str, ...] = ("v1",)
    """Versions with this rule; the first is read if there is a choice. Empty: all versions."""
    progress: Check | None = None
    manual: Check | None = None
    """Manual step of a roll-out that waits for nothing else: what, why, and the remedy."""

    def api_version(self, listed: str) -> str:
        """The version in which to read an object that may be listed with another one."""
        if not self.versions:
            return listed
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]


class CheckError(ValueError):
    """An object could not be checked; the message has the reason."""


class Malformed(CheckError):
    """A field has another type than in the API of its kind."""

    def __init__(self, path: str, expected: str, found: object) -> None:
        super().__init__(f"{path} must be {expected}, not {_JSON_NAMES.get(type(found), 'of an unknown type')}")


_JSON_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a fraction",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def quoted(text: str) -> str:
    """The text in double quotes, with quotes, backslashes and control characters escaped."""
    return json.dumps(text, ensure_ascii=False)


# --- fields


def field(obj: Object, path: str) -> Any:
    """The value at a dotted path, None if any part of the path is missing or null."""
    found: Any = obj
    names = path.split(".")
    for depth, name in enumerate(names):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise Malformed(".".join(names[:depth]), "an object", found)
        found = found.get(name)
    return found


def optional_integer(obj: Object, path: str) -> int | None:
    found = field(obj, path)
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    raise Malformed(path, "an integer", found)


def integer(obj: Object, path: str) -> int:
    return optional_integer(obj, path) or 0


def string(obj: Object, path: str) -> str:
    found = field(obj, path)
    if found is None or isinstance(found, str):
        return found or ""
    raise Malformed(path, "a string", found)


def sequence(obj: Object, path: str) -> list[Any]:
    found = field(obj, path)
    if found is None or isinstance(found, list):
        return found or []
    raise Malformed(path, "a list", found)


def desired_replicas(obj: Object) -> int:
    replicas = optional_integer(obj, "spec.replicas")
    return 1 if replicas is None else replicas


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int


def condition(obj: Object, condition_type: str) -> Condition | None:
    """The first condition of the type."""
    for entry in sequence(obj, "status.conditions"):
        if not isinstance(entry, dict):
            raise Malformed("status.conditions", "a list of objects", entry)
        if entry.get("type") == condition_type:
            return Condition(
                type=condition_type,
                status=string(entry, "status"),
                reason=string(entry, "reason"),
                message=string(entry, "message"),
                observed_generation=integer(entry, "observedGeneration"),
            )
    return None


# --- problems


def outdated(obj: Object) -> str | None:
    """Problem if the controller in charge has not observed the current spec yet."""
    return outdated_generation(obj, integer(obj, "status.observedGeneration"))


def outdated_generation(obj: Object, observed: int) -> str | None:
    generation = integer(obj, "metadata.generation")
    return f"observed generation outdated ({observed}/{generation})" if observed < generation else None


def missing_condition(condition_type: str) -> str:
    return f"condition {quoted(condition_type)} is missing"


def wrong_status(found: Condition, expected: str) -> str | None:
    if found.status == expected:
        return None
    return (
        f"condition {quoted(found.type)} has invalid status {found.status} (expected {expected})"
        f" due to {found.reason}: {found.message}"
    )


def required_condition(obj: Object, condition_type: str, expected: str) -> str | None:
    """Problem unless the condition exists, with this status."""
    found = condition(obj, condition_type)
    return missing_condition(condition_type) if found is None else wrong_status(found, expected)


def optional_condition(obj: Object, condition_type: str, expected: str) -> str | None:
    """Problem if the condition exists, with another status."""
    found = condition(obj, condition_type)
    return None if found is None else wrong_status(found, expected)


def partly_updated(updated: int, desired: int) -> str | None:
    return f"{updated} of {desired} replica(s) have been updated" if updated < desired else None
