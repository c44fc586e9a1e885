"""Objects in an archive for support: fields of an allow-list, with texts that may quote credentials cut, all bounded.

A field that is not in the list is left out, so that a new field, or one of an extension, reveals nothing. Below a field
with `True` are scalars, or lists of them. Secrets are never read.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from gardener import keys
from gardener.overview.events import in_order
from kube.objects import Object
from process.redaction import REDACTED, redact_text

Allowed = Mapping[str, Any]
"""Fields by name: True, or those below; `*` for any other name."""

_LONGEST = 2_000
"""Characters of a text."""
_MOST_ITEMS = 500
_MOST_EVENTS = 300
_LARGEST = 2 << 20
"""Bytes of a file."""

_NOTES = dict.fromkeys(
    (
        keys.OPERATION,
        keys.MAINTENANCE_OPERATION,
        keys.NEEDS_RETRY,
        keys.TASKS,
        keys.TIMESTAMP,
        keys.CONFIRM_DELETION,
        keys.CONFIRM_FORCE_DELETION,
        keys.SHOOT_IGNORE,
        keys.SHOOT_NO_CLEANUP,
        keys.SHOOT_SKIP_CLEANUP,
        keys.SHOOT_SKIP_READINESS,
        keys.SHOOT_SYNC_PERIOD,
        keys.CORDONED,
    ),
    True,
)
_META = {
    **dict.fromkeys(
        (
            *("name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp"),
            *("deletionTimestamp", "finalizers"),
        ),
        True,
    ),
    "annotations": _NOTES,
    "labels": {keys.SHOOT_STATUS: True},
}
_CONDITION = dict.fromkeys(
    ("type", "status", "reason", "message", "codes", "lastTransitionTime", "lastUpdateTime"), True
)
_ERROR = dict.fromkeys(("description", "codes", "taskID", "lastUpdateTime"), True)
_PROGRESS = {
    "conditions": _CONDITION,
    "observedGeneration": True,
    "lastOperation": dict.fromkeys(("type", "state", "progress", "description", "lastUpdateTime"), True),
    "lastError": _ERROR,
    "lastErrors": _ERROR,
}
_NETWORKS = dict.fromkeys(("type", "pods", "services", "nodes", "ipFamilies"), True)
_IMAGE = {"name": True, "version": True}
_WORKER = {
    **dict.fromkeys(("name", "minimum", "maximum", "maxSurge", "maxUnavailable", "zones"), True),
    "machine": {"type": True, "architecture": True, "image": _IMAGE},
    "cri": {"name": True},
    "kubernetes": {"version": True},
}
_ROTATION = dict.fromkeys(
    (
        *("phase", "lastInitiationTime", "lastInitiationFinishedTime", "lastCompletionTime"),
        "lastCompletionTriggeredTime",
    ),
    True,
)
_GARDENER = {"gardener": {"name": True, "version": True}}

SHOOT: Allowed = {
    "apiVersion": True,
    "kind": True,
    "metadata": _META,
    "spec": {
        **dict.fromkeys(("region", "purpose", "seedName", "schedulerName", "cloudProfileName"), True),
        "cloudProfile": {"kind": True, "name": True},
        "kubernetes": {"version": True},
        "networking": _NETWORKS,
        "hibernation": {"enabled": True, "schedules": {"start": True, "end": True, "location": True}},
        "maintenance": {
            "timeWindow": {"begin": True, "end": True},
            "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True},
            "confineSpecUpdateRollout": True,
        },
        "controlPlane": {"highAvailability": {"failureTolerance": {"type": True}}},
        "provider": {"type": True, "workers": _WORKER},
        "extensions": {"type": True, "disabled": True},
        "exposureClassName": True,
    },
    "status": {
        **_PROGRESS,
        **_GARDENER,
        **dict.fromkeys(
            (
                *("seedName", "technicalID", "uid", "hibernated", "retryCycleStartTime", "migrationStartTime"),
                *("observedOperationSequence", "lastHibernationTriggerTime"),
            ),
            True,
        ),
        "constraints": _CONDITION,
        "credentials": {"rotation": {"*": _ROTATION}},
        "lastMaintenance": dict.fromkeys(("state", "description", "failureReason", "triggeredTime"), True),
    },
}
SEED: Allowed = {
    "apiVersion": True,
    "kind": True,
    "metadata": _META,
    "spec": {
        "provider": {"type": True, "region": True, "zones": True},
        "networks": {**_NETWORKS, "shootDefaults": _NETWORKS},
        "taints": {"key": True},
    },
    "status": {
        **_PROGRESS,
        **_GARDENER,
        "kubernetesVersion": True,
        "phase": True,
        "capacity": {"*": True},
        "allocatable": {"*": True},
    },
}
PROJECT: Allowed = {
    "apiVersion": True,
    "kind": True,
    "metadata": _META,
    "spec": {"namespace": True},
    "status": {"phase": True, "observedGeneration": True},
}
CLUSTER: Allowed = {
    "apiVersion": True,
    "kind": True,
    "metadata": _META,
    "spec": {"shoot": SHOOT, "seed": SEED, "cloudProfile": {"metadata": {"name": True, "generation": True}}},
}
IN_SEED: Allowed = {
    "apiVersion": True,
    "kind": True,
    "metadata": _META,
    "spec": {"type": True},
    "status": _PROGRESS,
}
"""Objects of a Shoot in the seed: those of extensions, and ManagedResources."""
EVENT: Allowed = {
    **dict.fromkeys(("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime"), True),
    "involvedObject": {"kind": True, "namespace": True, "name": True},
    "source": {"component": True},
    "reportingComponent": True,
    "series": {"count": True, "lastObservedTime": True},
}
_TASK = dict.fromkeys(
    ("id", "name", "state", "begin", "seconds", "attempts", "after", "reason", "error", "remedy", "codes"), True
)
_FLOW = {
    **dict.fromkeys(("flow", "state", "began", "seconds"), True),
    "tasks": {**_TASK, "awaited": dict.fromkeys(("kind", "namespace", "name", "since", "reason"), True)},
}
FLOWS: Allowed = {"running": _FLOW, "last": _FLOW}
FINDING: Allowed = dict.fromkeys(("level", "about", "message", "remedy", "time"), True)

_ASSIGNED = re.compile(
    r"(?i)((?:passw(?:or)?d|passphrase|token|secret|credentials?|key|signature|[?&]sig)\\*[\"']?\s*[=:]\s*\\*[\"']?)"
    r"(?:(?<=\")[^\"\\]+|(?<=')[^'\\]+|[^\s\"',;&\\]+)"
    r"|(authorization\W{1,6}basic\s+)[\w+/=-]+"
)
"""Value after a name that is that of a credential; text in quotes, or a word. JSON in a text has backslashes."""
_ENCODED = re.compile(r"(?<![\w/+])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*\d)[A-Za-z0-9+/_-]{40,}={0,2}")
"""Long word of capital and small letters and digits: perhaps encoded data. Names of objects and digests are none."""


def reduced(value: Any, allowed: Any) -> Any:
    """Allowed part of a value; None if there is none."""
    if isinstance(value, list):
        found = [reduced(each, allowed) for each in value[:_MOST_ITEMS]]
        return [each for each in found if each is not None]
    if isinstance(value, dict):
        if not isinstance(allowed, Mapping):
            return None
        parts = {
            name[:_LONGEST]: reduced(each, rule)
            for name, each in list(value.items())[:_MOST_ITEMS]
            if (rule := allowed.get(name, allowed.get("*"))) is not None
        }
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(allowed, Mapping):
        return None
    return safe_text(value) if isinstance(value, str) else value


def safe_text(text: str) -> str:
    """Text without likely credentials, cut off if it is long."""
    safe = _ENCODED.sub(
        REDACTED, _ASSIGNED.sub(rf"\1\2{REDACTED}", redact_text(text))
    )  # first: a part is not recognized
    return safe if len(safe) <= _LONGEST else f"{safe[:_LONGEST]}… ({len(safe) - _LONGEST} characters more)"


def newest(events: Iterable[Object]) -> list[Object]:
    """The newest Events, in order."""
    return in_order(events)[-_MOST_EVENTS:]


def file(content: Any) -> bytes:
    """JSON of a file; a note if it is too large."""
    encoded = orjson.dumps(content, option=orjson.OPT_INDENT_2)
    return encoded if len(encoded) <= _LARGEST else orjson.dumps({"omitted": f"{len(encoded)} bytes"})
