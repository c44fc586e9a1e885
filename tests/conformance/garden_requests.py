"""Recorded requests to the original's API of the garden, and their answers here, without a cluster.

A request goes through defaults, mutating webhook, schema and validating webhook of its kind, as `kit.webhooks.garden`
does it; so does what the garden holds before. Answers are the same if both refuse, or if both store the same object.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.garden_placeholders import filled_text
from gardener.api.garden.definitions import definition
from gardener.api.structural import with_defaults
from kit.webhooks.garden import Asked, Outcome
from kube.objects import Object, group_of, mapping, mappings, metadata
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.registry import KINDS

_FILE = Path(__file__).with_suffix(".json.gz")
_PROJECT, _NAMESPACE = "p0000000", "garden-p0000000"
_TASKS = "shoot.gardener.cloud/tasks"
_ACTIONS = (
    *("modify-spec-kubernetes namespacedcloudprofiles", "modify-spec-machineimages namespacedcloudprofiles"),
    *("manage-members projects", "modify-spec-tolerations-whitelist projects", "update shoots/binding"),
    *(f"get {resource}" for resource in ("configmaps", "quotas", "secrets", "workloadidentities")),
)
_OWN_PROJECT: Object = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Project",
    "metadata": {"name": _PROJECT},
    "spec": {"namespace": _NAMESPACE},
}
_KINDS = {(kind.resource.api_version, kind.resource.kind): kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    in_project: bool
    setup: tuple[Object, ...]
    request: Object
    answers: tuple[Object, ...]
    """Of the releases that were queried."""


def _recorded() -> Object:
    return mapping(json.loads(filled_text(gzip.decompress(_FILE.read_bytes()).decode(), _PROJECT)))


def areas() -> frozenset[str]:
    """All there are."""
    return frozenset(case["area"] for case in _recorded()["cases"])


def cases(*wanted: str) -> Iterator[Case]:
    """Args: wanted: areas."""
    for case in _recorded()["cases"]:
        if case["area"] in wanted:
            answers = tuple(each["answer"] for each in case["expect"].values())
            yield Case(case["id"], case.get("project", True), tuple(case.get("setup", ())), case["request"], answers)


def prelude() -> list[Object]:
    found: list[Object] = _recorded()["prelude"]
    return found


# --- playing


def played(case: Case) -> Outcome:
    garden: list[Object] = []
    for obj in (*prelude(), *([_OWN_PROJECT] if case.in_project else []), *case.setup):
        garden.append(_stored(obj, garden))
    return _requested(case, garden)


def _requested(case: Case, garden: Sequence[Object]) -> Outcome:
    request = case.request
    who = request.get("as", "admin")
    if request["verb"] == "create":
        obj = placed(request["object"])
        return _asked(_kind(obj), garden, case, who).create(obj)
    api_version, kind_name, name = request["ref"].split(" ")
    namespace, _, name = name.rpartition("/")
    kind = _KINDS[api_version, kind_name]
    wanted = {"name": name, **({"namespace": namespace or _NAMESPACE} if kind.resource.namespaced else {})}
    old = next(obj for obj in garden if obj["kind"] == kind_name and wanted.items() <= metadata(obj).items())
    requested = _asked(kind, garden, case, who)
    if request["verb"] == "delete":
        return requested.delete(old)
    body = {"spec": {"seedName": request["seed"]}} if request["verb"] == "bind" else request["body"]
    new = _merged(old, body)
    return requested.update_status(old, new) if request.get("sub") == "status" else requested.update(old, new)


def _asked(kind: Kind, garden: Sequence[Object], case: Case, who: str) -> Asked:
    denied = () if who == "admin" else tuple(set(_ACTIONS) - _granted(case.setup))
    known = {resource.kind for resource in kind.reads}
    seen = [obj for obj in garden if obj["kind"] in known]
    return Asked(kind, user=who, groups=case.request.get("groups", ()), garden=seen, denied=denied)


def _granted(setup: Sequence[Object]) -> set[str]:
    rules = [rule for obj in setup for rule in mappings(obj.get("rules"))]
    return {f"{verb} {resource}" for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def _stored(obj: Object, garden: Sequence[Object]) -> Object:
    """As the API server stores it; what has no webhooks yet, with the defaults of its schema."""
    obj = placed(obj)
    known = definition(group=group_of(obj["apiVersion"]), kind=obj["kind"])
    if known is None:
        return obj
    kind = _KINDS.get((obj["apiVersion"], obj["kind"]))
    if kind is None:
        return mapping(with_defaults(known.schema, obj))
    seen = {resource.kind for resource in kind.reads}
    created = Asked(kind, garden=[each for each in garden if each["kind"] in seen]).create(obj)
    assert created.status is None, f"{obj['kind']} of the setup: {created.message}"
    return created.object


def placed(obj: Object) -> Object:
    known = definition(group=group_of(obj["apiVersion"]), kind=obj["kind"])
    is_cluster_scoped = obj["kind"].startswith(("ClusterRole", "Namespace")) and known is None
    if is_cluster_scoped or (known is not None and not known.resource.namespaced):
        return obj
    return {**obj, "metadata": {"namespace": _NAMESPACE, **metadata(obj)}}


def _kind(obj: Object) -> Kind:
    return _KINDS[obj["apiVersion"], obj["kind"]]


def _merged(obj: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(mapping(obj))
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


# --- comparing


def is_equal(outcome: Outcome, answer: Object, *, status: bool = False) -> bool:
    if outcome.status is not None or answer["code"] >= 400:
        return outcome.status is not None and answer["code"] >= 400
    return bool(answer["object"] == "ok" or normal(outcome.object, status=status) == answer["object"])


def fields(answer: Object) -> set[str]:
    """That a refusal is about."""
    return {cause["field"] for cause in answer.get("causes", ())} - {""}


def normal(obj: Object, *, status: bool = False) -> Object:
    """Without what the recording leaves out: empty values, bookkeeping, who created it and when."""
    kept = {name: value for name, value in obj.items() if name != "operation" and (status or name != "status")}
    meta = {
        name: value for name, value in metadata(obj).items() if name in {"name", "namespace", "labels", "finalizers"}
    }
    ours = {"gardener.cloud/created-by", "gardener.cloud/timestamp"}
    notes = {name: value for name, value in mapping(metadata(obj).get("annotations")).items() if name not in ours}
    if _TASKS in notes:
        notes[_TASKS] = ",".join(sorted(notes[_TASKS].split(",")))
    return mapping(_walked(_pruned({**kept, "metadata": {**meta, "annotations": notes}})))


def _walked(value: Any) -> Any:
    match value:
        case {"begin": _, "end": _}:
            return "<window>"
        case dict():
            return {name: _walked(inner) for name, inner in value.items()}
        case list():
            return [_walked(inner) for inner in value]
        case _:
            return value


def _pruned(value: Any) -> Any:
    match value:
        case dict():
            kept = {name: _pruned(inner) for name, inner in value.items()}
            return {name: inner for name, inner in kept.items() if inner not in (None, "", {}, [])}
        case list():
            return [_pruned(inner) for inner in value]
        case _:
            return value
