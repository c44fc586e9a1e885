"""Findings of rules about a write, and the one answer made of them.

A `FieldError` (of `kube.validation`: `invalid`, `required`, `forbidden`, `not_supported`, `duplicate`, `not_found`,
`too_long`) is about the value of a field and makes the answer 422. A `Denial` is about something not permitted now or
not to this user, 403. With both kinds the answer is 422, and its message has the denials, too.

An UPDATE is never refused for a field that it does not change: `ratcheted` drops findings that the stored object has
already. It compares the findings about the new object with those about the stored one, so a rule about several fields
(begin and end) still counts when any of them changes.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kube.objects import Object
from kube.resources import Resource
from kube.validation import FieldError, invalid_status, shown

MOST_FINDINGS = 200
"""Findings in one answer: an object may have as many mistakes as a request has room for."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Finding with code 403; `path`, if it is about one field, is not shown; see `Right` and `ratcheted`."""

    message: str
    path: str = ""

    def __str__(self) -> str:
        return self.message


Finding = FieldError | Denial


def status(resource: Resource, name: str, findings: Sequence[Finding]) -> Object:
    """Return the Status that refuses a write, 422 or 403."""
    errors = [finding for finding in findings if isinstance(finding, FieldError)]
    denied = list(dict.fromkeys(finding for finding in findings if isinstance(finding, Denial)))
    denials = list(dict.fromkeys(map(str, denied)))
    if errors:
        refused = invalid_status(group=resource.group, kind=resource.kind, name=name, errors=errors)
        if denials:
            refused["message"] += f"; {', '.join(denials)}"
            # If an answer has causes, kubectl shows these instead of the message.
            refused["details"]["causes"] += map(_cause, denied)
        return refused
    listed = denials[0] if len(denials) == 1 else f"[{', '.join(denials)}]"
    return {
        "status": "Failure",
        "message": f"{resource.plural}.{resource.group} {shown(name)} is forbidden: {listed}",
        "reason": "Forbidden",
        "details": {"name": name, "group": resource.group, "kind": resource.plural},
        "code": 403,
    }


_NOWHERE = "<nil>"
"""Text of API servers for a cause that is about no field."""


def _cause(denial: Denial) -> Object:
    message = denial.message.removeprefix(f"{denial.path}: ")
    return {"reason": "FieldValueForbidden", "message": message, "field": denial.path or _NOWHERE}


# --- an update is not refused for what it leaves as it is

_INDEX = re.compile(r"\[(\d+)\]")
_STEP = re.compile(r"\[(\d+)\]|\[([^\]]*)(?:\]|\Z)|([^.\[\]]+)")
"""Keys come from users. An unclosed bracket extends to the end of the path, so that later brackets need no search."""
_ABSENT = object()


def ratcheted(findings: Iterable[Finding], new: Object, before: Iterable[Finding], old: Object) -> list[Finding]:
    """Findings about the new object, except those that the stored object has, too, at a field of the same value.

    Elements of lists may have moved: paths are compared without indices.
    """
    new_value, old_value = _Values(new), _Values(old)
    known = Counter((_identity(finding), old_value.at(finding.path)) for finding in before)
    kept = []
    for finding in findings:
        same = _identity(finding), new_value.at(finding.path)
        if known[same] > 0:
            known[same] -= 1
        else:
            kept.append(finding)
    return kept


class _Values:
    """Digests of the values at paths of findings: many may be about one field, which may be large."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj
        self._known: dict[str, bytes] = {}

    def at(self, path: str) -> bytes:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _digest(value_at(self._obj, path))
        return known


def _digest(value: Any) -> bytes:
    if value is _ABSENT:
        return b""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested more deeply than orjson supports, or an integer of more than 64 bits
        text = json.dumps(value, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).digest()


def _identity(finding: Finding) -> tuple[str, ...]:
    path = _INDEX.sub("[]", finding.path)
    if isinstance(finding, Denial):
        return path, _INDEX.sub("[]", finding.message)
    return path, finding.kind, finding.value, finding.detail


def value_at(obj: Any, path: str) -> Any:
    """Return the value at the path of a finding, such as `spec.members[1].roles[0]` or `metadata.labels[a.b/c]`.

    An absent or unreachable value equals only absent ones.
    """
    for index, key, name in _STEP.findall(path):
        if isinstance(obj, list):
            obj = obj[int(index)] if index and int(index) < len(obj) else _ABSENT
        elif isinstance(obj, dict):
            obj = obj.get(index or key or name, _ABSENT)
        else:
            return _ABSENT
    return obj
