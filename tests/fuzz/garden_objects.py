"""Kinds of the garden API: objects of a valid kind with odd values, through both webhooks and what lies between them.

Bytes are choices: which kind, which object to begin with, and what to change in it, by the schema of the kind. So
almost all inputs come as far as the rules. Whatever the values are: no rule raises, what was accepted is accepted again
and not changed again, and an update that leaves the spec as it is is not refused.
"""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gardener.api import garden as resources
from gardener.api.schema import Schema
from gardener.api.structural import errors
from kit.garden_objects import garden_object
from kit.webhooks.garden import Asked, Outcome
from kube.objects import Object
from kube.resources import NAMESPACES, SECRETS, Resource
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.operations import operation_of
from webhooks.garden.registry import KINDS
from webhooks.garden.shapes import shape_of
from webhooks.generic import copied
from webhooks.rules.shapes import WrongShape

T = TypeVar("T")

_RECORDED = Path(__file__).resolve().parents[1] / "conformance" / "garden_requests.json.gz"
_NAMESPACE = "garden-dev"
_MOST_EDITS = 8

TEXTS: Sequence[str] = (
    *("", "a", "b", "local", "seed", "sb", "secret", "garden", _NAMESPACE, "dev", "x" * 300, "Ü", " a ", "a--b"),
    *("10.0.0.0/8", "10.250.0.0/16", "10.0.0.1/8", "0.0.0.0/0", "::/0", "fd00::/48", "10.0.0.0/33", "10.0.0.1", "::1%eth0"),
    *("1.30.1", "1.30", "1.31.0-rc.1+x", "v1", "1..2", "9" * 40, ">= 1.30", "~1", "^", "> x", "1.30.1 - 2"),
    *("220000+0100", "010000-0000", "250000+0100", "00 17 * * 1", "* * * * *", "60 * * * *", "@daily", "*/0 * * * *"),
    *("1h", "-5m", "1h1h", "5m0.5s", "0", "1Gi", "-1", "1e3000", "10%", "500m", "1E", "..", "%%"),
    *("2026-01-01T00:00:00Z", "2999-12-31T23:59:60Z", "0001-01-01T00:00:00+14:00", "yesterday", "Europe/Berlin", "../../x"),
    *("true", "True", "False", "reconcile", "retry", "maintain", "rotate-credentials-start", "rotate-ca-complete"),
    *("https://example.com", "http://[", "https://user@example.com?q#f", "example.com", "*.example.com", "a@b.c", "YQ=="),
    *("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----", "ssh-rsa AAAA", "registry/a:b@sha256:c", "[]", "{"),
    *("system:serviceaccount:garden-dev:a", "system:serviceaccount:a", "extension:a", "User", "Group", "ServiceAccount"),
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 10, 100, 110, 443, 65536, 2**31 - 1, 2**31, 2**63 - 1, 0.5, 1e308)
ANYTHING: Sequence[Any] = (None, True, "", "a", 0, [], {}, [None], {"": None}, [[]], [{}], {"a": [{"b": {}}]})
ANNOTATIONS = (
    *("gardener.cloud/operation", "maintenance.gardener.cloud/operation", "confirmation.gardener.cloud/deletion"),
    *("confirmation.gardener.cloud/force-deletion", "backupentry.core.gardener.cloud/force-deletion"),
    *("shoot.gardener.cloud/tasks", "shoot.gardener.cloud/expiration-timestamp", "gardener.cloud/created-by"),
    *("shoot.gardener.cloud/ignore", "gardener.cloud/timestamp", "shoot.gardener.cloud/managed-seed-api-server"),
    *("dns.gardener.cloud/domain", "dns.gardener.cloud/provider", "dns.gardener.cloud/zone", "alpha.featuregates"),
    *("alpha.kube-apiserver.scaling.shoot.gardener.cloud/class", "namespace.gardener.cloud/keep-after-project-deletion"),
    *("migration.controllerdeployment.gardener.cloud/type", "shoot.gardener.cloud/use-as-seed", "bastion.gardener.cloud/a"),
)  # fmt: skip


@dataclass(slots=True)
class Choices:
    """When the bytes are used up, it is always the first."""

    data: bytes
    at: int = 0

    @property
    def left(self) -> bool:
        return self.at < len(self.data)

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def of(self, several: Sequence[T]) -> T:
        return several[self.byte() % len(several)]


def seeds() -> Iterator[bytes]:
    for number, kind in enumerate(KINDS):
        for base in range(len(_bases(kind.resource))):
            yield bytes([number, base])
            yield bytes([number, base, *((31 * number + 7 * base + 13 * step) % 256 for step in range(48))])


def target(data: bytes) -> None:
    choices = Choices(data)
    requested = choices.of(_requested())
    kind = requested.kind
    first = _edited(kind, choices.of(_bases(kind.resource)), choices, choices.byte() % _MOST_EDITS)
    created = requested.create(first)
    if _is_accepted(created):
        again = requested.create(created.object)
        assert (again.status, again.object) == (None, created.object)
        _stays(requested, created.object)
    _ratcheted(kind, requested, created.object)
    second = _edited(kind, created.object, choices, 1 + choices.byte() % 3)
    updated = requested.update(created.object, second)
    if _is_accepted(updated):
        _stays(requested, updated.object)
    requested.update_status(created.object, second)
    requested.delete(second)


def _is_accepted(outcome: Outcome) -> bool:
    assert outcome.code in {200, 400, 403, 422}, outcome
    return outcome.status is None


def _stays(requested: Asked, stored: Object) -> None:
    unchanged = requested.update(stored, stored)
    assert unchanged.status is None, (unchanged.message, stored)
    # An operation that was requested at the creation begins, and counts, with the next write.
    assert unchanged.object == stored or operation_of(stored), stored


def _ratcheted(kind: Kind, requested: Asked, stored: Object) -> None:
    """Whatever is stored: who adds a label is not refused for the rest."""
    if errors(kind.definition.schema, stored) or not _has_shape(kind, stored):
        return
    labelled = copied(stored)
    labelled["metadata"]["labels"] = {**(stored["metadata"].get("labels") or {}), "fuzz": "x"}
    outcome = requested.update(stored, labelled)
    assert outcome.status is None, (outcome.message, stored)


def _has_shape(kind: Kind, obj: Object) -> bool:
    try:
        shape_of(kind.definition).check(obj)
    except WrongShape:
        return False
    return True


# --- objects to begin with


@cache
def _requested() -> Sequence[Asked]:
    return [Asked(kind, garden=_GARDEN) for kind in KINDS]


_PLACEHOLDERS = (
    (r"\$P", "dev"),
    (r"\$NS", _NAMESPACE),
    (r"\$M", "1.3"),
    (r"\$WIN\+\d+m", "220000+0000"),
    (r"\$NOW-\w+", "2020-01-01T00:00:00Z"),
    (r"\$NOW\+\w+", "2999-01-01T00:00:00Z"),
)
"""What stands for names and times in the recorded requests."""


@cache
def _recorded() -> dict[tuple[str, str], list[Object]]:
    """By apiVersion and kind: what the recorded requests create."""
    text = gzip.decompress(_RECORDED.read_bytes()).decode()
    for pattern, value in _PLACEHOLDERS:
        text = re.sub(pattern, value, text)
    found: dict[tuple[str, str], list[Object]] = {}
    for case in json.loads(text)["cases"]:
        for obj in (*case.get("setup", ()), case["request"].get("object")):
            if isinstance(obj, dict) and obj.get("metadata"):
                known = found.setdefault((obj.get("apiVersion", ""), obj.get("kind", "")), [])
                if obj not in known:
                    known.append(obj)
    return found


@cache
def _bases(resource: Resource) -> Sequence[Object]:
    own = [garden_object(resource)] if resource.group else [_bare(resource)]
    return [*own, *_recorded().get((resource.api_version, resource.kind), ())][:256]


def _bare(resource: Resource) -> Object:
    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
    return {**resource.type_meta, "metadata": {"name": "thing", "labels": labels}}


_EXTENSIONS = (
    *("BackupBucket", "BackupEntry", "Bastion", "ControlPlane", "DNSRecord", "Infrastructure", "Network"),
    *("OperatingSystemConfig", "Worker"),
)
_GARDEN: Sequence[Object] = (
    *(
        garden_object(resource, name, namespace=_NAMESPACE)
        for resource, name in (
            (resources.BACKUP_BUCKETS, "bucket"),
            (resources.CLOUD_PROFILES, "local"),
            (resources.CREDENTIALS_BINDINGS, "cb"),
            (resources.EXPOSURE_CLASSES, "a"),
            (resources.MANAGED_SEEDS, "seed"),
            (resources.NAMESPACED_CLOUD_PROFILES, "a"),
            (resources.QUOTAS, "a"),
            (resources.SECRET_BINDINGS, "sb"),
            (resources.SEEDS, "seed"),
            (resources.SHOOTS, "shoot"),
            (resources.WORKLOAD_IDENTITIES, "a"),
        )
    ),
    {
        **garden_object(resources.CONTROLLER_REGISTRATIONS, "r"),
        "spec": {"resources": [{"kind": kind, "type": "local"} for kind in _EXTENSIONS]},
    },
    {**garden_object(resources.PROJECTS, "dev"), "spec": {"namespace": _NAMESPACE}},
    *({**_bare(SECRETS), "metadata": {"name": "secret", "namespace": each}} for each in ("garden", _NAMESPACE)),
    {**_bare(NAMESPACES), "metadata": {"name": _NAMESPACE}},
)


# --- changes


def _edited(kind: Kind, base: Object, choices: Choices, count: int) -> Object:
    obj: Object = copied(base)
    for _ in range(count):
        if choices.left:
            _edit(kind.definition.schema, obj, choices)
    return obj


def _edit(schema: Schema, obj: Object, choices: Choices) -> None:
    fields = [name for name in schema["properties"] if name not in {"apiVersion", "kind", "metadata"}]
    field = choices.of(("metadata", *fields, *fields))
    if field == "metadata":
        _edit_metadata(obj.setdefault("metadata", {}), choices)
    else:
        obj[field] = _changed(schema["properties"][field], obj.get(field), choices)


def _edit_metadata(meta: Object, choices: Choices) -> None:
    match choices.byte() % 5:
        case 0:
            meta["annotations"] = {**(meta.get("annotations") or {}), choices.of(ANNOTATIONS): choices.of(TEXTS)}
        case 1:
            meta["labels"] = {**(meta.get("labels") or {}), choices.of(TEXTS): choices.of(TEXTS)}
        case 2:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        case 3:
            meta["finalizers"] = ["gardener", choices.of(TEXTS)]
        case _:
            meta["name"] = choices.of(TEXTS)


def _changed(schema: Schema, value: Any, choices: Choices) -> Any:
    """The value, with one change somewhere in it."""
    properties = schema.get("properties")
    if isinstance(value, dict) and properties and (step := choices.byte() % 8) > 1:
        present = [name for name in properties if name in value]
        field = choices.of(present if step > 4 and present else list(properties))
        if step == 2:
            return {name: inner for name, inner in value.items() if name != field}
        return {**value, field: _changed(properties[field], value.get(field), choices)}
    if isinstance(value, list) and value and (step := choices.byte() % 8) > 1:
        if step == 2:
            return [*value, choices.of(value)]
        index = choices.byte() % len(value)
        return [*value[:index], _changed(schema.get("items", {}), value[index], choices), *value[index + 1 :]]
    return _made(schema, choices)


def _made(schema: Schema, choices: Choices) -> Any:
    if choices.byte() % 24 == 23:
        return copied(choices.of(ANYTHING))
    if schema.get("x-kubernetes-int-or-string"):
        return choices.of((*NUMBERS, *TEXTS))
    match schema.get("type"):
        case "object" if properties := schema.get("properties"):
            required = schema.get("required", ())
            chosen = {*required, *(choices.of(list(properties)) for _ in range(choices.byte() % 4))}
            return {name: _made(inner, choices) for name, inner in properties.items() if name in chosen}
        case "object":
            values = schema.get("additionalProperties")
            inner = values if isinstance(values, dict) else {}
            return {choices.of(TEXTS): _made(inner, choices) for _ in range(choices.byte() % 3)}
        case "array":
            return [_made(schema["items"], choices) for _ in range(choices.byte() % 4)]
        case "string":
            return choices.of((*(schema.get("enum") or ()), *TEXTS))
        case "boolean":
            return choices.byte() % 2 == 1
        case "integer" | "number":
            return choices.of(NUMBERS)
        case _:
            return copied(choices.of(ANYTHING))
