"""Normal forms of what a gardenlet writes: credentials are shown by what is in them, times relative to now.

The rest is as in `garden_normal`.
"""

import base64
import binascii
import copy
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube.objects import Object, mapping

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| \+0000 UTC)(?: m=\+[0-9.]+)?")
_SCENARIO = re.compile(r"\bc[0-9a-f]{4}\d{3}\b")
_TIME_OF_DAY = re.compile(r"\b\d{4}00\+0000\b")
_ADDRESS = re.compile(r"(https?://)?127\.0\.0\.1:\d+")
_LIST = re.compile(r"\[([^\[\]\s]+(?: [^\[\]\s]+)+)\]")
_JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
_BOOTSTRAP_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_REQUEST = re.compile(r"(seed-csr)-[\w-]{43}")
_VOLATILE = {
    *("creationTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "managedFields"),
    *("resourceVersion", "selfLink", "uid"),
}
_NEAR, _HOURS, _DAYS = 900, 72 * 3600, 3000 * 86400
_FIELDS: dict[str, tuple[str, ...]] = {
    "ConfigMap": ("data",),
    "Gardenlet": ("spec", "status"),
    "Lease": ("spec",),
    "Namespace": (),
    "NetworkPolicy": ("spec",),
    "Secret": ("data", "type", "immutable"),
    "Seed": ("spec", "status"),
    "ServiceAccount": ("automountServiceAccountToken",),
    "Shoot": ("status.conditions", "status.constraints"),
    "VerticalPodAutoscaler": ("spec.updatePolicy",),
}
"""What is compared beside the metadata, unless the scenario says."""
_CREATED_BY = "gardener.cloud/created-by"
_DESCRIPTION = "gardener.cloud/description"


class GardenletNormal:
    """The normal forms of one scenario's objects. Args: ca: of the garden, as kubeconfigs have it."""

    def __init__(self, name: str, *, ca: str) -> None:
        self._name, self._ca = name, ca

    def is_foreign(self, name: str) -> bool:
        """Whether it belongs to another scenario."""
        return self._name not in name and _SCENARIO.search(name) is not None

    def text(self, text: str) -> str:
        text = _TIME.sub(lambda found: _relative(found[0]), _UID.sub("<uid>", text))
        text = text.replace(f"garden-{self._name}", "$NS").replace(f"shoot--{self._name}--s", "$TID")
        text = text.replace(self._name, "$P")
        text = re.sub(rf"\b{self._name[-6:]}\b", "$T6", text)
        text = _TIME_OF_DAY.sub("<time of day>", text)
        text = _ADDRESS.sub("<address>", _REQUEST.sub(r"\1-<hash>", text))
        return _LIST.sub(lambda found: f"[{' '.join(sorted(found[1].split(' ')))}]", text)

    def of(self, live: Object | None, fields: Sequence[str] | None = None) -> Any:
        """Args: fields: that are compared beside the metadata, or instead of it after `!metadata`."""
        if live is None:
            return "absent"
        obj, generation = copy.deepcopy(live), live["metadata"].get("generation")
        obj.pop("operation", None)
        obj["metadata"] = self._metadata(obj)
        if isinstance(obj.get("status"), dict):
            obj["status"] = _status(obj["kind"], obj["status"], generation)
            if not obj["status"]:
                del obj["status"]
        if obj["kind"] == "Secret" and "data" in obj:
            obj["data"] = {name: self._datum(value) for name, value in (obj["data"] or {}).items()}
        if obj["kind"] == "Lease":
            obj["spec"] = {name: value for name, value in obj["spec"].items() if name != "leaseTransitions"}
        normal = self._walk(obj)
        chosen = _FIELDS.get(obj["kind"]) if fields is None else fields
        return normal if chosen is None else _only(normal, chosen)

    def event(self, event: Object) -> str:
        return self.text(f"{event['type']} {event['reason']}: {event.get('message', '')}")

    def request(self, csr: Object) -> Object:
        """Of a certificate."""
        asked = x509.load_pem_x509_csr(base64.b64decode(csr["spec"]["request"]))
        key, spec = asked.public_key(), csr["spec"]
        names = [
            str(each.value)
            for extension in asked.extensions
            if isinstance(extension.value, x509.SubjectAlternativeName)
            for each in extension.value
        ]
        conditions = mapping(csr.get("status")).get("conditions") or []
        found: Object = self._walk(
            {
                "name": csr["metadata"]["name"],
                **{name: spec.get(name) for name in ("signerName", "usages", "expirationSeconds", "username")},
                "groups": sorted(spec.get("groups") or ()),
                **_subject(asked.subject),
                "SANs": names,
                "key": f"{'EC' if isinstance(key, ec.EllipticCurvePublicKey) else 'RSA'}PublicKey",
                "conditions": [{name: each.get(name) for name in ("type", "status", "reason")} for each in conditions],
                "issued": bool(mapping(csr.get("status")).get("certificate")),
            }
        )
        return found

    def _metadata(self, obj: Object) -> Object:
        meta: Object = {
            name: True if name == "deletionTimestamp" else value
            for name, value in obj["metadata"].items()
            if name not in _VOLATILE
        }
        for reference in meta.get("ownerReferences", []):
            reference.pop("uid", None)
        written = meta.get("annotations") or {}
        written.pop(_CREATED_BY, None)
        if _DESCRIPTION in written:
            written[_DESCRIPTION] = "<description>"
        if "finalizers" in meta:
            # The flow of the Seed, which is not played, has one.
            meta["finalizers"] = sorted(
                each for each in meta["finalizers"] if (obj["kind"], each) != ("Seed", "gardener")
            )
        if obj["kind"] == "Namespace":
            (meta.get("labels") or {}).pop("kubernetes.io/metadata.name", None)
        return meta

    def _datum(self, encoded: str) -> Any:
        data = base64.b64decode(encoded)
        if (known := self._credentials(data)) is not None:
            return self._walk(known)
        return self.text(data.decode(errors="replace"))

    def _credentials(self, data: bytes) -> Any:
        """What is in a kubeconfig, a token, or a certificate; None: it is none of these."""
        text = data.decode(errors="replace").strip()
        if text.startswith(("apiVersion", "{", "clusters", "kind")):
            with_kind = yaml.safe_load(text)
            if isinstance(with_kind, dict) and with_kind.get("kind") == "Config":
                return {"kubeconfig": self._kubeconfig(with_kind)}
        if _JWT.fullmatch(text) and (claims := _claims(text)) is not None:
            return {"token": claims}
        if "BEGIN CERTIFICATE" in text:
            return "<certificate>"
        return "<key>" if "PRIVATE KEY" in text else None

    def _kubeconfig(self, config: Object) -> Object:
        (cluster, *_), contexts = config["clusters"], config.get("contexts") or []
        (user, *_) = config.get("users") or [{"name": None, "user": {}}]
        shown = dict(user.get("user") or {})
        if "client-certificate-data" in shown:
            shown["client-certificate-data"] = _certificate(base64.b64decode(shown["client-certificate-data"]))
        if "client-key-data" in shown:
            shown["client-key-data"] = "<key>"
        if token := shown.get("token"):
            other = "<bootstrap token>" if _BOOTSTRAP_TOKEN.fullmatch(token) else "<token>"
            shown["token"] = _claims(token) or other
        return {
            "cluster": {cluster["name"]: self._cluster(cluster["cluster"])},
            "user": {user["name"]: shown},
            "contexts": [{"name": each["name"], **each["context"]} for each in contexts],
            "current-context": config.get("current-context"),
        }

    def _cluster(self, cluster: Object) -> Object:
        shown = dict(cluster)
        if "127.0.0.1" in shown.get("server", ""):
            shown["server"] = "<url>"
        if (ca := shown.get("certificate-authority-data")) is not None:
            shown["certificate-authority-data"] = self._authority(ca)
        return shown

    def _authority(self, encoded: str) -> str:
        if encoded == self._ca:
            return "<CA of the garden>"
        decoded = base64.b64decode(encoded)
        if isinstance(_certificate(decoded), str):
            return f"<no CA: {decoded.decode(errors='replace')[:40]}>"
        return "<another CA>"

    def _walk(self, value: Any) -> Any:
        match value:
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


def common_names(csr: Object) -> list[str]:
    asked = x509.load_pem_x509_csr(base64.b64decode(csr["spec"]["request"]))
    names: list[str] = _subject(asked.subject)["CN"]
    return names


def _relative(text: str) -> str:
    try:
        then = datetime.fromisoformat(f"{text.replace(' ', 'T')[:19]}+00:00")
    except ValueError:
        return "<time>"
    seconds = (then - datetime.now(UTC)).total_seconds()
    if abs(seconds) < _NEAR:
        return "<now>"
    if abs(seconds) < _HOURS:
        return f"<now{round(seconds / 3600):+d}h>"
    return f"<now{round(seconds / 86400):+d}d>" if abs(seconds) < _DAYS else "<time>"


def _claims(token: str) -> Object | None:
    """Of a JSON web token: whose it is, for whom, and how long it lives."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        life = f"{round((claims['exp'] - claims['iat']) / 3600)}h"
    except (IndexError, KeyError, ValueError, binascii.Error):
        return None
    own = {name: claims[name] for name in ("gardener.cloud",) if name in claims}
    return {"sub": claims.get("sub"), "aud": claims.get("aud"), "life": life, **own}


def _certificate(pem: bytes) -> Object | str:
    try:
        found = x509.load_pem_x509_certificate(pem)
    except ValueError:
        return "<not a certificate>"
    hours = (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds() / 3600
    return {**_subject(found.subject), "life": f"{round(hours)}h" if hours < 72 else f"{round(hours / 24)}d"}


def _subject(name: x509.Name) -> Object:
    return {
        "CN": [each.value for each in name.get_attributes_for_oid(NameOID.COMMON_NAME)],
        "O": sorted(str(each.value) for each in name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
    }


_EMPTY: tuple[Any, ...] = ("", {}, False, {"id": "", "name": "", "version": ""})


def _status(kind: str, status: Object, generation: int | None) -> Object:
    kept = dict(status)
    for name in ("conditions", "constraints"):
        if name in kept:
            shown = ({field: each[field] for field in _SHOWN if field in each} for each in kept[name] or ())
            kept[name] = sorted(shown, key=lambda each: str(each["type"]))
    if "observedGeneration" in kept:
        kept["observedGeneration"] = "current" if kept["observedGeneration"] == generation else "stale"
    if kind in {"Seed", "Shoot"}:
        for name in ("gardener", "technicalID", "uid", "clusterIdentity", "hibernated"):
            if name in kept and kept[name] in _EMPTY:
                del kept[name]
        if "gardener" in kept:
            kept["gardener"] = {name: f"<{name}>" for name in kept["gardener"]}
    if kind == "Seed":
        kept.pop("phase", None)
        if "kubernetesVersion" in kept:
            kept["kubernetesVersion"] = "<version>"
        if mapping(kept.get("lastOperation")).get("state") in {"Error", "Processing"}:
            kept["lastOperation"] = "<of the seed flow>"
    return kept


_SHOWN = ("type", "status", "reason", "message", "codes")


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
    return {name: value for name, value in kept.items() if value != {}}
