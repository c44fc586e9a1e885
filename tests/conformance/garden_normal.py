"""Normal forms of a garden's objects: hashes and random suffixes are placeholders, versions those of the recording."""

import base64
import copy
import re
from collections.abc import Callable, Sequence
from typing import Any

from conformance.garden_placeholders import OLDEST_MINOR
from conformance.object_normal import ObjectNormal
from kube.objects import Object

_WINDOW = re.compile(r"\d{6}[+-]\d{4}")
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

_LONG_SECONDS = 400 * 86400
_HASHES = ("seed-spec-hash", "registration-spec-hash", "deployment-hash")
_TASKS = "shoot.gardener.cloud/tasks"
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


class GardenNormal(ObjectNormal):
    keeps_empty = True

    def fields_of(self, obj: Object) -> Sequence[str] | None:
        return _FIELDS.get(obj["kind"])

    def text(self, text: str) -> str:
        text = super().text(text).replace(self._name, "$P")
        text = re.sub(r"\$NS-[0-9a-f]{5}\b", "$NS-<5 hex>", text)
        text = _VERSION.sub(_minor, text)
        text = _USERS.sub(lambda match: f"[{' '.join(sorted(match[1].split(' ')))}]", text)
        text = _SUPPORTED.sub(lambda match: match[1] + ", ".join(sorted(re.findall(r'"[^"]*"', match[2]))), text)
        text = _ALL_SEEDS.sub(r"\1<n>\2", text)
        return _GENERATED_NAME.sub(r"\1-<random>", text)

    def from_now(self, seconds: float) -> str:
        return f"<now{round(seconds / 3600):+d}h>" if abs(seconds) < _LONG_SECONDS else "<time>"

    def name(self, obj: Object) -> str:
        """As in a list; a ControllerInstallation is told by its Seed, too."""
        meta = obj["metadata"]
        if obj["kind"] != "ControllerInstallation":
            return self.text(meta["name"])
        return self.text(f"{_stable_name(meta)} on {obj['spec']['seedRef']['name']}")

    def status(self, kind: str, status: Object, generation: int | None) -> Object:
        left_out = {"selector", "observedOperationSequence"} | ({"phase"} if kind == "Seed" else set())
        shown = {name: value for name, value in status.items() if name not in left_out}
        kept = super().status(kind, shown, generation)
        if "certificate" in kept:
            kept["certificate"] = "<certificate>"
        if kind == "WorkloadIdentity":
            kept["sub"] = "<sub>" if kept.get("sub") else ""
        if "cloudProfileSpec" in kept:
            kept["cloudProfileSpec"] = _in_order(kept["cloudProfileSpec"])
        return kept

    def reduce(self, obj: Object) -> None:
        written = obj["metadata"].get("annotations") or {}
        written.pop("gardener.cloud/timestamp", None)
        if written.get(_TASKS):
            written[_TASKS] = ",".join(sorted(written[_TASKS].split(",")))
        if (reduce := _REDUCED.get(obj["kind"])) is not None:
            reduce(obj)

    def walk(self, value: Any) -> Any:
        match value:
            case {"begin": str(begin), "end": _} if len(value) == 2 and _WINDOW.fullmatch(begin):
                return "<window>"
            case _:
                return super().walk(value)


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


def _minor(match: re.Match[str]) -> str:
    number = int(match[1]) - OLDEST_MINOR
    return f"$M{number}" if 0 <= number <= 4 else match[0]


def _stable_name(meta: Object) -> str:
    return meta["name"] if _FIXED in meta.get("labels", {}) else _RANDOM_SUFFIX.sub("-<random>", meta["name"])


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
