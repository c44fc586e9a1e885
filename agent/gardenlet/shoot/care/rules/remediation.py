"""Corrections of webhooks that may break a Shoot: they exclude what the Shoot needs.

    timeoutSeconds                       at most the time that callers wait
    namespaceSelector, objectSelector    exclude objects that are recognizable by labels
    failurePolicy                        Ignore, where they are not

An annotation lists the corrections in effect. If a user's tool reverts them repeatedly: see `Reversals`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.gardenlet.shoot.care.rules.webhooks import (
    IGNORE,
    LONGEST_SECONDS,
    LONGEST_SECONDS_FOR_LEASES,
    SENSITIVE,
    Sensitive,
    failure_policy,
    is_checked,
    is_slow_for_leases,
    met,
    seconds,
)
from gardener import keys
from kube.clock import format_time
from kube.objects import Object, annotations, labels, mapping, mappings, metadata, text

_HEAD = (
    "Webhooks of this configuration might keep nodes from joining the cluster, or system components from running."
    " These modifications have been made:"
)
_EXPRESSION = re.compile(r"\{(\S+) NotIn \[(\S+)\]\}")
_LINE = re.compile(r'^- (\w+) of webhook "([^"]*)" was (?:set to|extended with) (.*)$')
MOST_REVERSALS = 3
_COUNTED, _PAUSE = timedelta(hours=1), timedelta(days=1)


def is_remediated(configuration: Object) -> bool:
    return keys.WARNING in annotations(configuration)


def corrected(configuration: Object) -> Object | None:
    """Return the configuration with webhooks that exclude what a Shoot needs; None if no correction is necessary."""
    if not is_checked(configuration) or labels(configuration).get(keys.REMEDIATION_EXCLUDE) == "true":
        return None
    changed = deepcopy(configuration)
    lines = [line for webhook in mappings(changed.get("webhooks")) for line in _correct(webhook)]
    if not lines:
        return None
    kept = [each for each in lines_of(configuration) if each not in lines and _is_in_effect(each, changed)]
    notes = {**annotations(changed), keys.WARNING: "\n".join([_HEAD, *kept, *lines])}
    meta = {name: value for name, value in metadata(changed).items() if name != "managedFields"}
    changed["metadata"] = {**meta, "annotations": notes}
    return changed


def _correct(webhook: Object) -> list[str]:
    """Correct a webhook in place, and return the lines that describe the corrections."""
    lines = []
    longest = LONGEST_SECONDS_FOR_LEASES if is_slow_for_leases(webhook) else LONGEST_SECONDS
    if seconds(webhook) > longest:
        lines.append(_set(webhook, "timeoutSeconds", longest))
    if failure_policy(webhook) == IGNORE:
        return lines
    affected = met(webhook, SENSITIVE)
    if any(not (each.object_labels or each.namespace_labels) for each in affected):
        lines.append(_set(webhook, "failurePolicy", IGNORE))
    for field_, carried in (
        ("objectSelector", _labels(affected, of_objects=True)),
        ("namespaceSelector", _labels(affected, of_objects=False)),
    ):
        if carried:
            lines.append(_extend(webhook, field_, carried))
    return lines


def _labels(affected: Iterable[Sensitive], *, of_objects: bool) -> dict[str, set[str]]:
    carried: dict[str, set[str]] = {}
    for each in affected:
        for name, value in ((each.object_labels if of_objects else each.namespace_labels) or {}).items():
            carried.setdefault(name, set()).add(value)
    return carried


def _extend(webhook: Object, of: str, carried: Mapping[str, set[str]]) -> str:
    wanted = [(name, value) for name in sorted(carried) for value in sorted(carried[name])]
    selector = mapping(webhook.get(of))
    expressions = mappings(selector.get("matchExpressions"))
    added = [{"key": name, "operator": "NotIn", "values": [value]} for name, value in wanted]
    new = [each for each in added if each not in expressions]
    webhook[of] = {**selector, "matchExpressions": [*expressions, *new]}
    reported = " ".join(f"{{{name} NotIn [{value}]}}" for name, value in wanted)
    return f'- {of} of webhook "{text(webhook.get("name"))}" was extended with [{reported}]'


def _set(webhook: Object, of: str, value: object) -> str:
    webhook[of] = value
    return f'- {of} of webhook "{text(webhook.get("name"))}" was set to {value}'


def lines_of(configuration: Object) -> list[str]:
    """Corrections listed in the annotation."""
    return [each for each in annotations(configuration).get(keys.WARNING, "").splitlines() if _LINE.match(each)]


def sentence(lines: Iterable[str]) -> str:
    return "; ".join(each.removeprefix("- ") for each in lines)


def _is_in_effect(line: str, configuration: Object) -> bool:
    if (found := _LINE.match(line)) is None:
        return False
    of, name, reported = found.groups()
    webhook = next((each for each in mappings(configuration.get("webhooks")) if each.get("name") == name), None)
    if webhook is None:
        return False
    if reported.startswith("["):
        present = mappings(mapping(webhook.get(of)).get("matchExpressions"))
        expressions = (
            {"key": key, "operator": "NotIn", "values": [value]} for key, value in _EXPRESSION.findall(reported)
        )
        return all(each in present for each in expressions)
    return str(webhook.get(of)) == reported


# --- reversals by other writers


def last_manager(configuration: Object, *, own: str) -> str:
    """Latest field manager other than this process; empty if unknown."""
    entries = [each for each in mappings(metadata(configuration).get("managedFields")) if each.get("manager") != own]
    newest = max(entries, key=lambda each: text(each.get("time")), default=None)
    return text(mapping(newest).get("manager"))


@dataclass(slots=True)
class Reversals:
    """Corrections of one webhook configuration, and the end of the pause after too many reversals."""

    corrections: list[datetime] = field(default_factory=list)
    paused_until: datetime | None = None
    reverted: Sequence[str] = ()
    """The lines of the reverted corrections."""
    by: str = ""
    announced: Sequence[str] = ()
    """The lines of corrections that users were informed of."""

    def are_announced(self, lines: Iterable[str]) -> bool:
        return set(lines) <= set(self.announced)

    def is_paused(self, now: datetime) -> bool:
        return self.paused_until is not None and now < self.paused_until

    def may_correct(self, configuration: Object, lines: Sequence[str], *, own: str, now: datetime) -> bool:
        """Whether to correct once more; every correction after the first means that the last one was reverted."""
        if self.is_paused(now):
            return False
        self.corrections = [each for each in self.corrections if now - each < _COUNTED]
        if len(self.corrections) >= MOST_REVERSALS:
            self.paused_until, self.corrections = now + _PAUSE, []
            self.reverted, self.by = lines, last_manager(configuration, own=own)
            return False
        self.corrections.append(now)
        return True

    def text(self) -> str:
        """Reason why it is not corrected."""
        assert self.paused_until is not None
        who = f'"{self.by}"' if self.by else "somebody"
        until = format_time(self.paused_until)
        return f"{who} has reverted {MOST_REVERSALS} times: {sentence(self.reverted)}; not corrected until {until}"
