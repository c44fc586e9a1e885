"""Semantic versions of Kubernetes and of machine images, and constraints on them (`>= 1.28, < 1.31`)."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_VERSION = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)
_RELEASE = ((1, 0, ""),)


class Version(NamedTuple):
    """A version, in semantic order; build metadata after a `+` does not count."""

    major: int
    minor: int
    patch: int
    suffix: tuple[tuple[int, int, str], ...] = _RELEASE
    """The identifiers after the hyphen, encoded such that releases come last."""

    @property
    def is_release(self) -> bool:
        return self.suffix == _RELEASE


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """Parse a version; None if it is invalid. Missing parts (`1.30`) count as zero."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.groups()[:3])
    return Version(major, minor, patch, _suffix(match[4]) if match[4] else _RELEASE)


def _suffix(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, int(each), "") if each.isdigit() else (0, 1 << 63, each) for each in text[:256].split("."))


_SKEW_SINCE = (1, 28)


def most_behind(control_plane: Version) -> int:
    """Minor versions that the kubelets of a pool may be behind: three from Kubernetes 1.28 on, two before."""
    return 3 if control_plane >= _SKEW_SINCE else 2


def is_too_far_behind(pool: Version, control_plane: Version) -> bool:
    return pool.major != control_plane.major or control_plane.minor - pool.minor > most_behind(control_plane)


def has_prefix(version: str, prefix: str) -> bool:
    """Whether `1.30.5` belongs to `1.30`, `1` or the empty prefix; numbers match as a whole."""
    return not prefix or version == prefix or version.startswith(f"{prefix}.")


# --- constraints

Constraint = Callable[[Version], bool]
_PARTIAL = r"v?(?:[\dxX*]+)(?:\.[\dxX*]+){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
_RANGE = re.compile(rf"({_PARTIAL})\s+-\s+({_PARTIAL})", re.ASCII)
_TERM = re.compile(rf"\s*(=>|=<|>=|<=|!=|~>|[=<>~^]?)\s*({_PARTIAL})\s*,?", re.ASCII)
_LONGEST = 256


@lru_cache(maxsize=512)
def parse_constraint(text: str) -> Constraint:
    """Parse alternatives separated by `||`, of conditions separated by commas or blanks.

    Raises:
        ValueError: the text is no constraint.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a constraint has at most {_LONGEST} characters")
    alternatives = [_all_of(part) for part in text.split("||")]
    return lambda version: any(all(holds(version) for holds in each) for each in alternatives)


def _all_of(text: str) -> list[Constraint]:
    text = _RANGE.sub(r">=\1, <=\2", text.strip())
    if not text:
        raise ValueError("no constraint; write one such as `>= 1.28, < 1.31`")
    conditions, at = [], 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} is not a valid constraint; write one such as `>= 1.28, < 1.31`")
        conditions.append(_condition(match[1], match[2]))
        at = match.end()
    return conditions


def _condition(operator: str, text: str) -> Constraint:
    """Constraint of one condition; wildcards (`1.x`, or simply `1`) turn its version into a range."""
    given = re.split(r"[-+]", text.removeprefix("v"), maxsplit=1)[0].split(".")
    known = next((i for i, part in enumerate(given) if not part.isdigit()), len(given))
    version = parse_version(text) if known == len(given) else parse_version(".".join(given[:known]) or "0")
    if version is None:
        raise ValueError(f"{text!r} is not a valid version")
    above = _next(version, known)

    def within(candidate: Version) -> bool:
        return version <= candidate and (above is None or candidate < above) and _suits(candidate, version)

    match operator:
        case "" | "=" if known == 3:
            return lambda candidate: candidate == version
        case "" | "=" | "~" | "~>" if known < 3:
            return within
        case "~" | "~>":
            return lambda candidate: version <= candidate < _next_minor(version) and _suits(candidate, version)
        case "^":
            end = _next(version, max(1, min(known, 1 + _leading_zeros(version))))
            return lambda candidate: version <= candidate and (end is None or candidate < end)
        case "!=":
            return (lambda candidate: candidate != version) if known == 3 else lambda candidate: not within(candidate)
        case ">":
            return lambda candidate: candidate > version if known == 3 else above is not None and candidate >= above
        case ">=" | "=>":
            return lambda candidate: candidate >= version
        case "<":
            return lambda candidate: candidate < version
        case _:
            return lambda candidate: candidate <= version if known == 3 else above is None or candidate < above


def _suits(candidate: Version, version: Version) -> bool:
    """Whether a range permits a candidate: prereleases only if its own version is one."""
    return candidate.is_release or not version.is_release


def _leading_zeros(version: Version) -> int:
    return 0 if version.major else 1 if version.minor else 2


def _next_minor(version: Version) -> Version:
    return Version(version.major, version.minor + 1, 0)


def _next(version: Version, known: int) -> Version | None:
    """The first version above all that share the known parts; None if no part is known."""
    match known:
        case 0:
            return None
        case 1:
            return Version(version.major + 1, 0, 0)
        case 2:
            return _next_minor(version)
        case _:
            return Version(version.major, version.minor, version.patch + 1)
