"""Fields that are set when an object is created and are left to other writers from then on.

The annotation `ignore-differences` of a ManagedResource names them, by JSON pointers for kinds and names, in the form
that Argo CD has established:

    - group: apps
      kind: Deployment
      name: storefront
      jsonPointers: [/spec/replicas]

A merge takes these fields from the live object, so they neither differ nor are written.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gardener import keys
from kube.objects import Object, annotations, group_of
from kube.validation import FieldError, forbidden, invalid, not_supported, required
from kube.yaml import Budget, DialectError, load

MOST_RULES = 50
MOST_POINTERS = 50
"""Pointers of one rule."""
_LONGEST = 1024
"""Maximum length of a pointer, in characters."""
_MOST_VALUES = 10_000
_ANNOTATION = f"metadata.annotations[{keys.IGNORE_DIFFERENCES}]"
_FIELDS = ("group", "kind", "name", "namespace", "jsonPointers")
_BAD_ESCAPE = re.compile("~(?![01])")
_INDEX = re.compile("0|[1-9][0-9]{0,5}")
_IDENTITY = frozenset({"apiVersion", "kind"})
_OTHERS_MAY_SET = frozenset({"labels", "annotations"})
_SHOWN = 80
"""Characters of a wrong value in a message."""

Pointer = tuple[str, ...]
"""The steps of a JSON pointer (RFC 6901), unescaped."""


@dataclass(frozen=True, slots=True)
class Rule:
    group: str
    kind: str
    name: str
    """Empty: all."""
    namespace: str
    """Empty: all."""
    pointers: tuple[Pointer, ...]

    def fits(self, reference: Mapping[str, Any]) -> bool:
        return (
            self.kind == reference.get("kind")
            and self.group == group_of(reference.get("apiVersion") or "")
            and self.name in {"", reference.get("name")}
            and self.namespace in {"", reference.get("namespace")}
        )

    def __str__(self) -> str:
        """Objects that it matches, such as `Deployment.apps shop/web`."""
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        named = "/".join(part for part in (self.namespace, self.name) if part)
        if self.namespace and not self.name:
            return f"{kind} in namespace {self.namespace}"
        return f"{kind} {named}" if named else kind


@dataclass(frozen=True, slots=True)
class IgnoredFields:
    rules: tuple[Rule, ...] = ()
    problems: tuple[FieldError, ...] = ()

    @classmethod
    def of(cls, managed_resource: Object) -> "IgnoredFields":
        """Rules in the annotation; only the valid ones if there are problems."""
        text = annotations(managed_resource).get(keys.IGNORE_DIFFERENCES)
        if not text or not text.strip():
            return cls()
        try:
            entries = load(text, budget=Budget(_MOST_VALUES, len(text) * 4))
        except DialectError as error:
            return cls(problems=(invalid(_ANNOTATION, _shown(text), f"must be a list in YAML or JSON: {error}"),))
        if not isinstance(entries, list):
            return cls(problems=(invalid(_ANNOTATION, _shown(text), "must be a list of rules"),))
        problems: list[FieldError] = []
        if len(entries) > MOST_RULES:
            problems.append(_too_many(_ANNOTATION, "rules", len(entries), MOST_RULES))
        parsed = [_rule(f"{_ANNOTATION}[{number}]", each) for number, each in enumerate(entries[:MOST_RULES])]
        rules = tuple(rule for rule, found in parsed if not found)
        return cls(rules, (*problems, *(problem for _, found in parsed for problem in found)))

    def pointers(self, reference: Mapping[str, Any]) -> tuple[Pointer, ...]:
        """Pointers to the ignored fields of one object."""
        if not self.rules:
            return ()
        return tuple(pointer for rule in self.rules if rule.fits(reference) for pointer in rule.pointers)


def digest_of(pointers: Sequence[Pointer]) -> bytes:
    """Digest of pointers; empty if there are none."""
    return hashlib.blake2b(repr(pointers).encode(), digest_size=8).digest() if pointers else b""


# --- reading


def _rule(path: str, entry: Any) -> tuple[Rule, list[FieldError]]:
    nothing = Rule("", "", "", "", ())
    if not isinstance(entry, dict):
        return nothing, [invalid(path, _shown(str(entry)), "must be a rule with `kind` and `jsonPointers`")]
    problems = [not_supported(f"{path}.{_shown(str(name))}", "", _FIELDS) for name in entry if name not in _FIELDS]
    texts: dict[str, str] = {}
    for name in ("group", "kind", "name", "namespace"):
        value = entry.get(name) or ""
        if not isinstance(value, str):
            problems.append(invalid(f"{path}.{name}", _shown(str(value)), "must be a string"))
        texts[name] = str(value)
    if not texts["kind"]:
        problems.append(required(f"{path}.kind", "the kind of the objects, such as Deployment"))
    if "/" in texts["group"]:
        problems.append(invalid(f"{path}.group", _shown(texts["group"]), "must be without version, as apps"))
    pointers, path = entry.get("jsonPointers") or [], f"{path}.jsonPointers"
    if not isinstance(pointers, list) or not pointers:
        problems.append(required(path, "a list of JSON pointers, such as /spec/replicas"))
        return nothing, problems
    if len(pointers) > MOST_POINTERS:
        problems.append(_too_many(path, "pointers", len(pointers), MOST_POINTERS))
    steps = []
    for number, pointer in enumerate(pointers[:MOST_POINTERS]):
        found = list(_pointer_problems(f"{path}[{number}]", pointer))
        problems += found
        if not found:
            steps.append(_steps(pointer))
    return Rule(**texts, pointers=tuple(steps)), problems


def _pointer_problems(path: str, pointer: Any) -> Iterator[FieldError]:
    shown = _shown(str(pointer))
    if not isinstance(pointer, str) or not pointer.startswith("/") or pointer == "/":
        yield invalid(path, shown, "must be a JSON pointer to a field, such as /spec/replicas")
    elif len(pointer) > _LONGEST:
        yield invalid(path, shown, f"may have at most {_LONGEST} characters")
    elif _BAD_ESCAPE.search(pointer):
        yield invalid(path, shown, "write ~0 for a ~ in a name, ~1 for a /")
    elif not all(steps := _steps(pointer)):
        yield invalid(path, shown, "may not have empty steps; write ~1 for a / in a name")
    elif steps[0] in _IDENTITY:
        yield forbidden(path, f'"{shown}" identifies the object; remove the pointer')
    elif steps[0] == "status":
        yield forbidden(path, f'"{shown}" is never written; remove the pointer')
    elif steps[0] == "metadata" and (len(steps) != 3 or steps[1] not in _OTHERS_MAY_SET):
        yield forbidden(path, f'"{shown}": only single labels and annotations of the metadata are supported')
    elif steps[0] == "metadata" and steps[2].startswith(f"{keys.GROUP}/"):
        yield forbidden(path, f'"{shown}" is an instruction to the agent; remove the pointer')


def _steps(pointer: str) -> Pointer:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))


def _too_many(path: str, what: str, found: int, most: int) -> FieldError:
    return invalid(path, str(found), f"at most {most} {what} are allowed")


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- merging


def with_live_fields(wanted: Object, live: Object, pointers: Sequence[Pointer]) -> Object:
    """The object to write with these fields as in the live one, even if they are missing there.

    Nothing changes where the two differ in kind on the way, or an item of a list is on one side only.
    """
    for pointer in pointers:
        for each in _of_secret(wanted, pointer):
            wanted = _taken(wanted, live, each)
    return wanted


_NOTHING: Any = object()


def _of_secret(obj: Object, pointer: Pointer) -> Iterator[Pointer]:
    """Pointers of a field; `stringData` in the manifest of a Secret is `data` in the live one."""
    yield pointer
    if obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1" and pointer[0] in {"data", "stringData"}:
        yield ("stringData" if pointer[0] == "data" else "data"), *pointer[1:]


def _taken(wanted: Any, live: Any, pointer: Pointer) -> Any:
    if not pointer:
        return live
    step, rest = pointer[0], pointer[1:]
    if isinstance(wanted, list) and isinstance(live, list):
        index = int(step) if _INDEX.fullmatch(step) else len(wanted)
        if index >= min(len(wanted), len(live)):
            return wanted
        return [*wanted[:index], _taken(wanted[index], live[index], rest), *wanted[index + 1 :]]
    if not isinstance(wanted, dict) or not isinstance(live, dict):
        return wanted
    own, theirs = wanted.get(step, _NOTHING), live.get(step, _NOTHING)
    if rest and (own is not _NOTHING or theirs is not _NOTHING):
        # A mapping that is missing on one side counts as empty.
        inner = _taken({} if own is _NOTHING else own, {} if theirs is _NOTHING else theirs, rest)
        value = _NOTHING if inner == {} and own != {} and theirs is _NOTHING else inner
    else:
        value = theirs
    if value is _NOTHING:
        return {name: kept for name, kept in wanted.items() if name != step}
    return {**wanted, step: value}
