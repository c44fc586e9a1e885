"""Normal forms of a garden's objects: what differs from run to run is left out, and what other scenarios add.

Times become relative to now, hashes and random suffixes placeholders, names those of the recording. What is listed in
any order is sorted.
"""

import base64
import copy
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from conformance.garden_placeholders import OLDEST_MINOR
from kube.objects import Object

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| \+0000 UTC)")
_WINDOW = re.compile(r"\d{6}[+-]\d{4}")
_PROJECT = re.compile(r"\bc[0-9a-f]{4}\d{3}\b")
"""As `project_name` makes them."""
_VERSION = re.compile(r"(?<![\d.])1\.(\d\d)(?=\.\d|\b)")
_USERS = re.compile(r"\[([^\[\]\s]+/[^\[\]\s]+(?: [^\[\]\s]+/[^\[\]\s]+)+)\]")
_SUPPORTED = re.compile(r'(supported values: )("[^"]*"(?:, "[^"]*")+)')
_GENERATED_NAME = re.compile(r"(conf-base|reg-\$P[a-z-]*)-[a-z0-9]{5}\b")
_LABEL_OF_SEED = re.compile(r"(name\.)?seed\.gardener\.cloud/")
_ALL_SEEDS = re.compile(
    r"(none (?:out )?of the )\d+( seeds (?:is valid|has the matching labels required by seed selector of 'CloudProfile'))"
)
"""Counts those of other scenarios."""
_RANDOM_SUFFIX = re.compile(r"-[a-z0-9]{5}$")

_NEAR_SECONDS, _LONG_SECONDS = 900, 400 * 86400
_VOLATILE = {
    *("creationTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "managedFields"),
    *("resourceVersion", "selfLink", "uid"),
}
_TOLD_OF_CONDITIONS = ("type", "status", "reason", "message", "codes")
_EMPTY_AT_FIRST = ("gardener", "technicalID", "uid", "clusterIdentity", "hibernated")
_EMPTY: tuple[Any, ...] = ("", {}, False, {"id": "", "name": "", "version": ""})
_HASHES = ("seed-spec-hash", "registration-spec-hash", "deployment-hash")
_TASKS = "shoot.gardener.cloud/tasks"
_OPERATION = "gardener.cloud/operation"
_FIXED = "x-fixed"
"""A label: the name is no generated one."""
_FIELDS: dict[str, tuple[str, ...]] = {
    "BackupBucket": ("status",),
    "BackupEntry": ("status",),
    "Bastion": ("status",),
    "CloudProfile": (),
    "ConfigMap": (),
    "ControllerDeployment": (),
    "ControllerRegistration": (),
    "CredentialsBinding": (),
    "ExposureClass": (),
    "ManagedSeed": ("spec.shoot", "status"),
    "ManagedSeedSet": ("status",),
    "Namespace": (),
    "NamespacedCloudProfile": ("status",),
    "Quota": (),
    "Secret": ("data", "type"),
    "SecretBinding": (),
    "Seed": ("status",),
    "Shoot": ("spec.hibernation.enabled", "spec.seedName", "status"),
    "ShootState": (),
    "WorkloadIdentity": (),
}
"""What is compared beside the metadata, unless the scenario tells; of other kinds everything."""


def project_name(run: int, number: int) -> str:
    """Of 8 characters. Args: run: below 65536."""
    return f"c{run:04x}{number:03}"


class GardenNormal:
    """The normal forms of one scenario's objects."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._namespace = f"garden-{project}"

    def is_foreign(self, name: str) -> bool:
        """Whether it belongs to another scenario."""
        return self._project not in name and _PROJECT.search(name) is not None

    def text(self, text: str) -> str:
        text = _TIME.sub(lambda match: _relative(match[0]), _UID.sub("<uid>", text))
        text = text.replace(self._namespace, "$NS").replace(self._project, "$P")
        text = re.sub(r"\$NS-[0-9a-f]{5}\b", "$NS-<5 hex>", text)
        text = _VERSION.sub(_minor, text)
        text = _USERS.sub(lambda match: f"[{' '.join(sorted(match[1].split(' ')))}]", text)
        text = _SUPPORTED.sub(lambda match: match[1] + ", ".join(sorted(re.findall(r'"[^"]*"', match[2]))), text)
        text = _ALL_SEEDS.sub(r"\1<n>\2", text)
        return _GENERATED_NAME.sub(r"\1-<random>", text)

    def name(self, obj: Object) -> str:
        """As in a list; a ControllerInstallation is told by its Seed, too."""
        meta = obj["metadata"]
        if obj["kind"] != "ControllerInstallation":
            return self.text(meta["name"])
        return self.text(f"{_stable_name(meta)} on {obj['spec']['seedRef']['name']}")

    def of(self, live: Object | None, fields: Sequence[str] | None = None) -> Any:
        """Args: fields: that are compared beside the metadata; None: those of the kind."""
        if live is None:
            return "absent"
        obj, generation = copy.deepcopy(live), live["metadata"].get("generation")
        obj.pop("operation", None)
        obj["metadata"] = _metadata(obj)
        if isinstance(obj.get("status"), dict):
            obj["status"] = _status(obj["kind"], obj["status"], generation)
            if not obj["status"]:
                del obj["status"]
        if (reduce := _REDUCED.get(obj["kind"])) is not None:
            reduce(obj)
        normal = self._walk(obj)
        chosen = _FIELDS.get(obj["kind"]) if fields is None else fields
        return normal if chosen is None else _only(normal, chosen)

    def _walk(self, value: Any) -> Any:
        match value:
            case {"begin": str(begin), "end": _} if len(value) == 2 and _WINDOW.fullmatch(begin):
                return "<window>"
            case dict():
                return {
                    self.text(name): self._walk(inner)
                    for name, inner in value.items()
                    if not self.is_foreign(name)
                    and not (inner in ({}, []) and name in {"labels", "annotations", "finalizers"})
                    and not (inner is None and name == "creationTimestamp")
                }
            case list():
                return [self._walk(inner) for inner in value if not (isinstance(inner, str) and self.is_foreign(inner))]
            case str():
                return self.text(value)
            case _:
                return value


def without_texts(value: Any) -> Any:
    """Without what is told to people: messages of conditions and Events, descriptions."""
    match value:
        case dict():
            told = {"description", "failureReason", *({"message"} if {"reason", "status"} <= value.keys() else ())}
            return {name: without_texts(inner) for name, inner in value.items() if name not in told}
        case list():
            return [
                re.sub(r"^((?:Normal|Warning) \w+): .*", r"\1", each, flags=re.DOTALL)
                if isinstance(each, str)
                else without_texts(each)
                for each in value
            ]
        case _:
            return value


def of_any_release(observations: Any) -> Any:
    """Observations without what only one of the two recorded releases does."""
    return {
        name: {ref: _of_any_release(ref, found) if isinstance(found, dict) else found for ref, found in seen.items()}
        for name, seen in observations.items()
    }


def _of_any_release(ref: str, obj: Object) -> Object:
    obj = copy.deepcopy(obj)
    meta, status = obj.get("metadata", {}), obj.get("status", {})
    for name in [name for name in meta.get("labels", {}) if _LABEL_OF_SEED.match(name)]:
        del meta["labels"][name]
    if " Shoot " in ref:
        kept = [name for name in meta.pop("finalizers", []) if name != "core.gardener.cloud/controllerregistration"]
        meta |= {"finalizers": kept} if kept else {}
    for found in status.get("conditions", []):
        if found.get("reason") in {"StatusUnknown", "SeedStatusUnknown"}:
            found |= {"reason": "StatusUnknown", "message": ""}
    return obj


def _relative(text: str) -> str:
    try:
        then = datetime.fromisoformat(f"{text.replace(' ', 'T')[:19]}+00:00")
    except ValueError:
        return "<time>"
    seconds = (then - datetime.now(UTC)).total_seconds()
    if abs(seconds) < _NEAR_SECONDS:
        return "<now>"
    return f"<now{round(seconds / 3600):+d}h>" if abs(seconds) < _LONG_SECONDS else "<time>"


def _minor(match: re.Match[str]) -> str:
    number = int(match[1]) - OLDEST_MINOR
    return f"$M{number}" if 0 <= number <= 4 else match[0]


def _stable_name(meta: Object) -> str:
    return meta["name"] if _FIXED in meta.get("labels", {}) else _RANDOM_SUFFIX.sub("-<random>", meta["name"])


def _metadata(obj: Object) -> Object:
    meta: Object = {
        name: True if name == "deletionTimestamp" else value
        for name, value in obj["metadata"].items()
        if name not in _VOLATILE
    }
    for reference in meta.get("ownerReferences", []):
        reference.pop("uid", None)
    written = meta.get("annotations") or {}
    for name in ("gardener.cloud/created-by", "gardener.cloud/timestamp"):
        written.pop(name, None)
    if written.get(_TASKS):
        written[_TASKS] = ",".join(sorted(written[_TASKS].split(",")))
    if obj["kind"] == "Shoot" and written.get(_OPERATION) == "reconcile":
        del written[_OPERATION]  # what else the same request changes decides whether it is consumed at once
    if isinstance(meta.get("finalizers"), list):
        meta["finalizers"] = sorted(meta["finalizers"])
    return meta


def _status(kind: str, status: Object, generation: int | None) -> Object:
    left_out = {"selector", "observedOperationSequence"}
    if kind in {"Seed", "ManagedSeed"}:
        left_out.add("phase")
    if kind in {"Seed", "Shoot"}:
        left_out |= {name for name in _EMPTY_AT_FIRST if name in status and status[name] in _EMPTY}
    kept = {name: value for name, value in status.items() if name not in left_out}
    for name in ("conditions", "constraints"):
        if name in kept:
            told = ({field: each[field] for field in _TOLD_OF_CONDITIONS if field in each} for each in kept[name] or ())
            kept[name] = sorted(told, key=lambda each: str(each["type"]))
    if "observedGeneration" in kept:
        kept["observedGeneration"] = "current" if kept["observedGeneration"] == generation else "stale"
    if "certificate" in kept:
        kept["certificate"] = "<certificate>"
    if kind == "WorkloadIdentity":
        kept["sub"] = "<sub>" if kept.get("sub") else ""
    if "cloudProfileSpec" in kept:
        kept["cloudProfileSpec"] = _in_order(kept["cloudProfileSpec"])
    return kept


def _in_order(value: Any) -> Any:
    """Lists of what has a name or a version."""
    match value:
        case dict():
            return {name: _in_order(inner) for name, inner in value.items()}
        case list():
            return sorted(map(_in_order, value), key=_named)
        case _:
            return value


def _named(value: Any) -> str:
    return str(value.get("name", value.get("version", ""))) if isinstance(value, dict) else ""


def _reduce_installation(obj: Object) -> None:
    meta = obj["metadata"]
    meta["name"] = _stable_name(meta)
    for name in ("seedRef", "registrationRef", "deploymentRef"):
        if name in obj["spec"]:
            obj["spec"][name] = {"name": obj["spec"][name]["name"]}
    meta.get("labels", {}).update({name: "<hash>" for name in _HASHES if name in meta.get("labels", {})})


def _reduce_request(obj: Object) -> None:
    obj["spec"] = {"usages": obj["spec"].get("usages"), "signerName": obj["spec"].get("signerName")}


def _reduce_secret(obj: Object) -> None:
    if "data" in obj:
        data = (obj["data"] or {}).items()
        obj["data"] = {name: base64.b64decode(text).decode(errors="replace") for name, text in data}


def _reduce_namespace(obj: Object) -> None:
    obj.pop("spec", None)
    obj["metadata"].get("labels", {}).pop("kubernetes.io/metadata.name", None)


def _reduce_quota(obj: Object) -> None:
    obj.pop("status", None)


def _reduce_role(obj: Object) -> None:
    """Rules that are aggregated come from others."""
    if obj.get("aggregationRule"):
        obj.pop("rules", None)


_REDUCED: dict[str, Callable[[Object], None]] = {
    "CertificateSigningRequest": _reduce_request,
    "ClusterRole": _reduce_role,
    "ControllerInstallation": _reduce_installation,
    "Namespace": _reduce_namespace,
    "ResourceQuota": _reduce_quota,
    "Role": _reduce_role,
    "Secret": _reduce_secret,
}


def _only(obj: Object, fields: Sequence[str]) -> Object:
    """Paths of fields; the metadata is added unless the first one is `!metadata`."""
    has_metadata = fields[:1] != ["!metadata"]
    kept: Object = {}
    for path in ("metadata", *fields) if has_metadata else fields[1:]:
        *parents, last = path.split(".")
        source, target = obj, kept
        for name in parents:
            if not isinstance(source.get(name), dict):
                break
            source, target = source[name], target.setdefault(name, {})
        else:
            if last in source:
                target[last] = source[last]
    return kept if has_metadata else {name: value for name, value in kept.items() if value != {}}
