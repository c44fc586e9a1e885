"""Settings in the annotations of a Service.

An invalid annotation invalidates nothing else: all other settings of the Service still count, and earlier effects of
the annotation stay until it is corrected.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from agent.shared.network_policy.rules.limits import (
    MOST_NOTES,
    MOST_PORTS,
    MOST_REQUIREMENTS,
    MOST_SELECTORS,
    MOST_VALUES,
)
from gardener import keys
from kube.objects import Object
from kube.validation import label_selector_errors

# --- ports of containers, as Services and annotations name them


_PROTOCOLS = ("TCP", "UDP", "SCTP")
_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Port:
    """Port of a container, by number or by name; None for all ports of the protocol."""

    protocol: str
    port: int | str | None
    end_port: int | None = None
    names_protocol: bool = True
    """Whether the protocol is given, not defaulted."""

    @property
    def slug(self) -> str:
        """Part of names for the port: `tcp-8080`, `udp-dns`."""
        return f"{self.protocol.lower()}-{self.port}"

    def rule(self) -> Object:
        """Entry of `ports` in a policy."""
        return {
            "protocol": self.protocol,
            **({"port": self.port} if self.port is not None else {}),
            **({"endPort": self.end_port} if self.end_port is not None else {}),
        }

    def __str__(self) -> str:
        parts = [self.protocol] if self.names_protocol else []
        return "/".join(parts + ([str(self.port)] if self.port is not None else []))


def allowed_port(entry: dict[str, Any]) -> Port:
    """Port of an entry of an annotation; a string of digits is a number.

    Raises:
        ValueError: no policy can have such a port.
    """
    protocol, port, end_port = entry.get("protocol") or "TCP", entry.get("port"), entry.get("endPort")
    if protocol not in _PROTOCOLS:
        raise ValueError(f'protocol "{protocol}" must be one of {", ".join(_PROTOCOLS)}')
    if isinstance(port, str) and port.isascii() and port.isdecimal():
        port = int(port)
    if isinstance(port, int) and not 1 <= port <= 65535:
        raise ValueError(f"port {port} is not between 1 and 65535")
    if isinstance(port, str) and not _NAME.fullmatch(port):
        raise ValueError(f'port "{port}" is neither a number nor the name of a port')
    if end_port is not None and not (isinstance(port, int) and port <= end_port <= 65535):
        raise ValueError(f"endPort {end_port} is not between a port given as a number and 65535")
    return Port(protocol, port, end_port, names_protocol=bool(entry.get("protocol")))


# --- all annotations of a Service


T = TypeVar("T")

_ALIAS = re.compile(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """An annotation that is invalid, or exceeds a limit."""

    annotation: str
    message: str
    is_limit: bool = False
    """Whether it exceeds a limit."""


class TooManyError(ValueError):
    """The annotation exceeds a limit of a Service."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Settings of all annotations of a Service."""

    namespace_selectors: tuple[Object, ...] = ()
    namespace_alias: str | None = None
    aliases: tuple[tuple[str, tuple[Port, ...]], ...] = ()
    """Sorted by alias; the empty alias stands for ports that count like the Service's own."""
    from_world: tuple[Port, ...] | None = None
    """Ports open to the world; empty for all, None for no traffic from the world."""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def are_complete(self) -> bool:
        """Whether all annotations but that for traffic from the world are valid, so that obsolete policies can go."""
        return all(problem.annotation == keys.FROM_WORLD for problem in self.problems)

    @property
    def world_is_unclear(self) -> bool:
        return any(problem.annotation == keys.FROM_WORLD for problem in self.problems)


def policy_settings(annotations: Mapping[str, str], *, own_ports: int = 0) -> PolicySettings:
    """Parse all annotations of a Service; `own_ports` is the number of its ports."""
    left = MOST_PORTS - own_ports
    problems: list[Problem] = []

    def understand(name: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(annotations[name])
        except ValueError as error:
            problems.append(Problem(name, str(error), is_limit=isinstance(error, TooManyError)))
            return None

    selectors = understand(keys.NAMESPACE_SELECTORS, _selectors) if keys.NAMESPACE_SELECTORS in annotations else ()
    world_ports = partial(_ports, at_most=MOST_PORTS)
    from_world = understand(keys.FROM_WORLD, world_ports) if keys.FROM_WORLD in annotations else None
    aliases = []
    for name in sorted(annotations):
        alias = _alias_of(name)
        if alias is None or len(problems) > MOST_NOTES:
            continue
        if not _ALIAS.fullmatch(alias):
            rule = "lower case letters, digits, '-' and '.', with a letter or digit at both ends"
            problems.append(Problem(name, f"\"{alias}\" can't be part of a policy's name; use only {rule}"))
        elif (ports := understand(name, partial(_addressable_ports, at_most=left))) is not None:
            aliases.append((alias, ports))
            left -= len(ports)
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
    entries = _entries(text, _Selector)
    _check_number(len(entries), MOST_SELECTORS, "selectors", "select by one common label")
    requirements = sum(len(each.matchLabels or {}) + len(each.matchExpressions or []) for each in entries)
    _check_number(requirements, MOST_REQUIREMENTS, "labels and expressions", "select by fewer labels")
    values = sum(len(r.values or []) for each in entries for r in each.matchExpressions or [] if r is not None)
    _check_number(values, MOST_VALUES, "values", "select by a label that all of them have")
    return tuple(_selector(f"[{index}]", entry) for index, entry in enumerate(entries))


def _selector(path: str, entry: _Selector) -> Object:
    selector = {
        "matchLabels": entry.matchLabels or {},
        "matchExpressions": [
            {"key": r.key or "", "operator": r.operator or "", "values": r.values or []}
            for r in (each or _Requirement() for each in entry.matchExpressions or [])
        ],
    }
    for error in label_selector_errors(path, selector):
        raise ValueError(str(error))
    return selector


def _ports(text: str, *, at_most: int) -> tuple[Port, ...]:
    entries = _entries(text, _Port)
    remedy = f"a Service and its annotations have {MOST_PORTS} at most; use ranges (endPort), or another Service"
    _check_number(len(entries), at_most, "ports", remedy)
    return tuple(_each_port(entries))


def _addressable_ports(text: str, *, at_most: int) -> tuple[Port, ...]:
    ports = _ports(text, at_most=at_most)
    for index, port in enumerate(ports):
        if port.port is None:
            raise ValueError(f"[{index}].port: Required value: name the port by number or by name")
    return ports


def _check_number(found: int, most: int, what: str, remedy: str) -> None:
    if found > most:
        raise TooManyError(f"Too many: {found} {what}, where {max(most, 0)} are possible: {remedy}")


def _each_port(entries: Sequence[_Port]) -> list[Port]:
    found = []
    for index, entry in enumerate(entries):
        try:
            found.append(allowed_port(msgspec.to_builtins(entry)))
        except ValueError as error:
            raise ValueError(f"[{index}]: {error}") from error
    return found
