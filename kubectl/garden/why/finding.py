"""One statement about an object, and the phrases that all kinds share."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from shlex import quote
from typing import Any

from gardener.conditions import IN_PROGRESS
from kube.clock import format_time, short_duration, time_or_none
from kube.objects import Key, Object, key, mappings, metadata, text
from kube.paths import at
from kube.resources import Resource
from kubectl.kinds import plural

_MOST_NAMED = 5
_PLUGIN = "kubectl gardener"
CONDITION = "condition"
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
OF_KUBERNETES = frozenset({_FOREGROUND, _ORPHAN})
"""Finalizers of Kubernetes itself."""


class Level(StrEnum):
    """Importance; the most important first."""

    BLOCKED = "blocked"
    """A user's request has yet to be fulfilled."""
    PROBLEM = "problem"
    NEXT = "next"
    """It happens without help."""
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Users:
    """Objects of a kind that refer to another one."""

    resource: Resource
    keys: Sequence[Key]

    def __str__(self) -> str:
        """Format as `ControllerInstallation a`, `2 Shoots garden-a/x, garden-a/y`."""
        kind = self.resource.kind
        head = kind if len(self.keys) == 1 else f"{len(self.keys)} {plural(kind)}"
        return f"{head} {named(self.keys)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    level: Level
    about: str
    """Subject, in a word or two."""
    text: str
    remedy: str = ""
    """Remedy; empty if none is needed or known."""
    at: datetime | None = None
    """Time of a future or past event; the text has it too, for people."""
    users: Sequence[Users] = ()

    def data(self) -> dict[str, Any]:
        """Finding for programs."""
        found = [
            {"kind": of.resource.kind, "namespace": k.namespace, "name": k.name} for of in self.users for k in of.keys
        ]
        return {
            "level": self.level.value,
            "about": self.about,
            "message": self.text,
            "remedy": self.remedy,
            "time": None if self.at is None else format_time(self.at),
            "users": [{name: value for name, value in each.items() if value} for each in found],
        }


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by importance; equal ones stay in their order."""
    levels = list(Level)
    return sorted(findings, key=lambda finding: levels.index(finding.level))


# --- phrases


def named(found: Sequence[Key]) -> str:
    """The first of many names."""
    shown = ", ".join(map(str, found[:_MOST_NAMED]))
    return shown if len(found) <= _MOST_NAMED else f"{shown} and {len(found) - _MOST_NAMED} more"


def together(users: Iterable[Users]) -> str:
    return "; ".join(map(str, users))


def when(moment: datetime, now: datetime) -> str:
    """Format as `2026-01-01T22:00:00Z (in 3h)`."""
    seconds = (moment - now).total_seconds()
    relative = f"in {short_duration(seconds)}" if seconds >= 0 else f"{short_duration(-seconds)} ago"
    return f"{format_time(moment)} ({relative})"


def since(moment: object, now: datetime) -> str:
    """Format as ` for 3h` for a time of the API; empty if there is none."""
    begun = time_or_none(moment)
    return "" if begun is None else f" for {short_duration(max(0.0, (now - begun).total_seconds()))}"


def one_line(value: object) -> str:
    return " ".join(text(value).split())


def command(verb: str, resource: Resource, own: Key, *more: str) -> str:
    """Command of kubectl for an object."""
    # Names in references and reports may be any text.
    name, where = quote(own.name), ("-n", quote(own.namespace)) if own.namespace else ()
    # Another value may be there already.
    overwrites = ("--overwrite",) if verb == "annotate" else ()
    return " ".join(("kubectl", verb, resource.kind.lower(), name, *where, *overwrites, *more))


def about_it(resource: Resource, own: Key) -> str:
    """Command that shows more about another object."""
    return command("gardener why", resource, own)


def plugin_command(verb: str, own: Key) -> str:
    """Command of this plugin for a Shoot."""
    return f"{_PLUGIN} {verb} {own.name} -n {own.namespace}"


# --- findings about an object of any kind

_NONE: Mapping[str, Level] = {}


def conditions(
    obj: Object,
    field: str,
    *,
    now: datetime,
    about: str = CONDITION,
    remedy_of: Callable[[Object], str] = lambda _: "",
    good_if_false: Mapping[str, Level] = _NONE,
    of_no_interest: Container[str] = (),
) -> Iterator[Finding]:
    """Conditions of its status that are not good.

    Args:
        obj: the object.
        field: of its status.
        now: the time.
        about: subject of the findings.
        remedy_of: returns the remedy for a condition.
        good_if_false: types that are not good if True, with the level for that case.
        of_no_interest: types that are good either way.
    """
    for each in mappings(at(obj, "status", field)):
        status = text(each.get("status"))
        kind, reason = text(each.get("type")), one_line(each.get("reason"))
        if kind in of_no_interest or status == ("False" if kind in good_if_false else "True"):
            continue
        changed = each.get("lastTransitionTime")
        message = f"{kind} is {status or 'not set'}{since(changed, now)}: {reason}: {one_line(each.get('message'))}"
        yield Finding(
            # A condition is Progressing for as long as its cause may vanish without help.
            level=Level.NEXT if status == IN_PROGRESS else good_if_false.get(kind, Level.PROBLEM),
            about=about,
            text=message.rstrip(": "),
            remedy=f"if it stays: {remedy}" if (remedy := remedy_of(each)) and status == IN_PROGRESS else remedy,
            at=time_or_none(changed),
        )


def deletion_begun(obj: Object) -> datetime | None:
    return time_or_none(metadata(obj).get("deletionTimestamp"))


def other_finalizers(resource: Resource, obj: Object, names: Iterable[str]) -> Iterator[Finding]:
    """Finalizers of an object in deletion that no other finding names."""
    for name in names:
        if name in OF_KUBERNETES:
            message = f"waits for objects that it owns (finalizer {name})"
            remedy = "wait for the garbage collector; see objects whose ownerReferences name it"
        else:
            message = f"waits for the owner of the finalizer {name}"
            remedy = f"check why that program does not remove it: {command('describe', resource, key(obj))}"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy)
