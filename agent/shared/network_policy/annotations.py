"""What the annotations of a Service ask for.

An annotation that can't be understood concerns itself alone: everything else that the Service asks for still counts,
and what it led to earlier stays as it is until somebody mends it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from agent.shared.network_policy.ports import Port, allowed_port
from gardener import keys
from kube.objects import Object
from kube.validation import label_selector_errors

T = TypeVar("T")

_ALIAS = re.compile(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """An annotation that can't be understood."""

    annotation: str
    message: str


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """All that the annotations of a Service ask for."""

    namespace_selectors: tuple[Object, ...] = ()
    namespace_alias: str | None = None
    aliases: tuple[tuple[str, tuple[Port, ...]], ...] = ()
    """Sorted; the empty alias stands for ports that count like the Service's own."""
    from_world: tuple[Port, ...] | None = None
    """Empty: all ports. None: the world is not let in."""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def are_complete(self) -> bool:
        """Whether everything but the traffic from the world is understood, so that what is not asked for may go."""
        return all(problem.annotation == keys.FROM_WORLD for problem in self.problems)

    @property
    def world_is_unclear(self) -> bool:
        return any(problem.annotation == keys.FROM_WORLD for problem in self.problems)


def policy_settings(annotations: Mapping[str, str]) -> PolicySettings:
    """Read all annotations of a Service."""
    problems: list[Problem] = []

    def understand(name: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(annotations[name])
        except ValueError as error:
            problems.append(Problem(name, str(error)))
            return None

    selectors = understand(keys.NAMESPACE_SELECTORS, _selectors) if keys.NAMESPACE_SELECTORS in annotations else ()
    from_world = understand(keys.FROM_WORLD, _ports) if keys.FROM_WORLD in annotations else None
    aliases = []
    for name in sorted(annotations):
        alias = _alias_of(name)
        if alias is None:
            continue
        if not _ALIAS.fullmatch(alias):
            rule = "lower case letters, digits, '-' and '.', with a letter or digit at both ends"
            problems.append(Problem(name, f"\"{alias}\" can't be part of a policy's name: it has to consist of {rule}"))
        elif (ports := understand(name, _addressable_ports)) is not None:
            aliases.append((alias, ports))
    return PolicySettings(
        namespace_selectors=selectors or (),
        namespace_alias=annotations.get(keys.NAMESPACE_ALIAS),
        aliases=tuple(aliases),
        from_world=from_world,
        problems=tuple(problems),
    )


def _alias_of(annotation: str) -> str | None:
    if not annotation.startswith(keys.FROM_PREFIX) or not annotation.endswith(keys.FROM_SUFFIX):
        return None
    least = len(keys.FROM_PREFIX) + len(keys.FROM_SUFFIX)
    return annotation[len(keys.FROM_PREFIX) : -len(keys.FROM_SUFFIX)] if len(annotation) >= least else None


# --- lists in JSON


class _Requirement(msgspec.Struct):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _Selector(msgspec.Struct):
    matchLabels: dict[str, str] | None = None  # noqa: N815 - the field's name
    matchExpressions: list[_Requirement | None] | None = None  # noqa: N815


class _Port(msgspec.Struct):
    port: int | str | None = None
    protocol: str | None = None
    endPort: int | None = None  # noqa: N815


def _entries(text: str, shape: type[Any]) -> list[Any]:
    try:
        entries = msgspec.json.decode(text, type=list[shape | None] | None)  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{_clipped(text)} is not the expected JSON list: {error}") from error
    return [shape() if entry is None else entry for entry in entries or []]


def _clipped(text: str) -> str:
    return f'"{text}"' if len(text) <= 200 else f'"{text[:200]}…"'


def _selectors(text: str) -> tuple[Object, ...]:
    found = []
    for index, entry in enumerate(_entries(text, _Selector)):
        selector = {
            "matchLabels": entry.matchLabels or {},
            "matchExpressions": [
                {"key": r.key or "", "operator": r.operator or "", "values": r.values or []}
                for r in (each or _Requirement() for each in entry.matchExpressions or [])
            ],
        }
        for error in label_selector_errors(f"[{index}]", selector):
            raise ValueError(str(error))
        found.append(selector)
    return tuple(found)


def _ports(text: str) -> tuple[Port, ...]:
    return tuple(_each_port(_entries(text, _Port)))


def _addressable_ports(text: str) -> tuple[Port, ...]:
    ports = _ports(text)
    for index, port in enumerate(ports):
        if port.port is None:
            raise ValueError(f"[{index}].port: Required value: name the port by number or by name")
    return ports


def _each_port(entries: Sequence[_Port]) -> list[Port]:
    found = []
    for index, entry in enumerate(entries):
        try:
            found.append(allowed_port(msgspec.to_builtins(entry)))
        except ValueError as error:
            raise ValueError(f"[{index}]: {error}") from error
    return found
