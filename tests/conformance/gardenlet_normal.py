"""Normal forms of what a gardenlet writes: credentials are shown by what is in them."""

import base64
import binascii
import gzip
import json
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conformance.object_normal import ObjectNormal
from gardener.managed_resource.decode import COMPRESSED_SUFFIX, decompress
from kube.objects import Object, mapping

_TIME_OF_DAY = re.compile(r"\b\d{4}00\+0000\b")
_ADDRESS = re.compile(r"(https?://)?127\.0\.0\.1:\d+")
_LIST = re.compile(r"\[([^\[\]\s]+(?: [^\[\]\s]+)+)\]")
_JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
_BOOTSTRAP_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_HASHED = re.compile(
    r"(seed-csr-)[\w-]{43}|(generic-garden-kubeconfig-|gardenlet-configmap-|gardenlet-kubeconfig-garden-|\$P-"
    r"|reference\.resources\.gardener\.cloud/\w+-)[0-9a-f]{8}\b"
)
_PULLING = re.compile(r"(chart pulling process failed: |failed pulling Helm chart from OCI repository: ).*", re.DOTALL)
_TOKEN_NAME = re.compile(r"\b(bootstrap-token-)[0-9a-f]{6}\b")
_OF_TOKENS = {"token-id": ("$T6", "<id>"), "token-secret": ("0123456789abcdef", "<secret>")}
"""Of those of scenarios, and of all others."""
_PORT = re.compile(r"port: \d+\b")
_AGE = re.compile(r"last updated: \S+ ago")
_HOURS, _DAYS = 72 * 3600, 3000 * 86400
_FIELDS: dict[str, tuple[str, ...]] = {
    "BackupBucket": ("status",),
    "BackupEntry": ("spec.seedName", "status"),
    "Bastion": ("status",),
    "ConfigMap": ("data",),
    "ControllerInstallation": ("status",),
    "Gardenlet": ("spec", "status"),
    "Lease": ("spec",),
    "ManagedResource": ("spec",),
    "ManagedSeed": ("status",),
    "Namespace": (),
    "NetworkPolicy": ("spec",),
    "Secret": ("data", "type", "immutable"),
    "Seed": ("spec", "status"),
    "ServiceAccount": ("automountServiceAccountToken",),
    "Shoot": ("status.conditions", "status.constraints"),
    "ShootState": ("spec",),
    "VerticalPodAutoscaler": ("spec.updatePolicy",),
}
_EXTENSIONS = "extensions.gardener.cloud/v1alpha1"
_OF_EXTENSIONS: dict[str, tuple[str, ...]] = {
    "BackupBucket": ("spec",),
    "BackupEntry": ("spec", "status.state", "status.resources"),
    "Bastion": ("spec",),
}
_TIMES_OF_BASTIONS = ("lastHeartbeatTimestamp", "expirationTimestamp")
_LARGEST = 1 << 20
_TYPE = ("apiVersion", "kind")
_DESCRIPTION = "gardener.cloud/description"
_WARNING = "gardener.cloud/warning"
_CHANGES = "modifications have been made:"


class GardenletNormal(ObjectNormal):
    """Args: ca: of the garden, as kubeconfigs have it."""

    def __init__(self, name: str, *, ca: str, hidden: Container[str] = ()) -> None:
        super().__init__(name, hidden=hidden)
        self._ca = ca

    def fields_of(self, obj: Object) -> Sequence[str] | None:
        return (_OF_EXTENSIONS if obj["apiVersion"] == _EXTENSIONS else _FIELDS).get(obj["kind"])

    def text(self, text: str) -> str:
        text = super().text(text).replace(f"shoot--{self._name}--s", "$TID").replace(self._name, "$P")
        text = re.sub(rf"\b{self._name[-6:]}\b", "$T6", text)
        text = _TIME_OF_DAY.sub("<time of day>", text)
        text = _HASHED.sub(lambda found: f"{found[1] or found[2]}<hash>", _ADDRESS.sub("<address>", text))
        text = _TOKEN_NAME.sub(r"\1<id>", text)
        text = _PULLING.sub(r"\1<error>", _AGE.sub("last updated: <duration> ago", text))
        return _LIST.sub(lambda found: f"[{' '.join(sorted(found[1].split(' ')))}]", text)

    def from_now(self, seconds: float) -> str:
        if abs(seconds) < _HOURS:
            return f"<now{round(seconds / 3600):+d}h>"
        return f"<now{round(seconds / 86400):+d}d>" if abs(seconds) < _DAYS else "<time>"

    def status(self, kind: str, status: Object, generation: int | None) -> Object:
        kept = super().status(kind, status, generation)
        if kind in {"Seed", "Shoot"} and "gardener" in kept:
            kept["gardener"] = {name: f"<{name}>" for name in kept["gardener"]}
        if kind == "Bastion":
            kept = {name: value for name, value in kept.items() if name not in _TIMES_OF_BASTIONS}
        if kind == "Seed":
            kept.pop("phase", None)
            if "kubernetesVersion" in kept:
                kept["kubernetesVersion"] = "<version>"
            if mapping(kept.get("lastOperation")).get("state") in {"Error", "Processing"}:
                kept["lastOperation"] = "<of the seed flow>"
        return kept

    def reduce(self, obj: Object) -> None:
        kind, meta = obj["kind"], obj["metadata"]
        if _DESCRIPTION in (written := meta.get("annotations") or {}):
            written[_DESCRIPTION] = "<description>"
        if kind == "Seed" and "finalizers" in meta:
            # The flow of the Seed, which is not replayed, has one.
            meta["finalizers"] = [each for each in meta["finalizers"] if each != "gardener"]
        if kind == "Secret" and "data" in obj:
            # Only our garden wants tokens of gardenlets to have a group.
            data = {name: value for name, value in (obj["data"] or {}).items() if name != "auth-extra-groups"}
            obj["data"] = {name: self._of_token(name, self._datum(value)) for name, value in data.items()}
        if kind == "ConfigMap" and "config.yaml" in obj.get("data", {}):
            obj["data"] = {"config.yaml": yaml.safe_load(_PORT.sub("port: <port>", obj["data"]["config.yaml"]))}
        if kind == "Bastion" and (script := obj.get("spec", {}).get("userData")):
            obj["spec"]["userData"] = _done_by(base64.b64decode(script).decode())
        if _WARNING in written:
            written[_WARNING] = _changes_in(written[_WARNING])
        for webhook in obj.get("webhooks") or ():
            for selector in (webhook.get("namespaceSelector"), webhook.get("objectSelector")):
                # They are added in any order.
                mapping(selector).get("matchExpressions", []).sort(key=lambda each: (each["key"], each["values"]))
        if kind == "ShootState" and "spec" in obj:
            obj["spec"] = _state(obj["spec"])
        if kind == "Lease":
            obj["spec"] = {name: value for name, value in obj["spec"].items() if name != "leaseTransitions"}

    def event(self, event: Object) -> str:
        return self.text(f"{event['type']} {event['reason']}: {event.get('message', '')}")

    def content(self, secret: Object | None) -> Object:
        """Of a Secret of a ManagedResource: its objects, under whatever keys, without empty values."""
        if secret is None:
            return {"metadata": "absent", "type": None, "immutable": None, "objects": {}}
        objects = {
            self.text(" ".join((obj["apiVersion"], obj["kind"], f"{meta.get('namespace', '')}/{meta['name']}"))): obj
            for obj in _documents(secret)
            for meta in (obj["metadata"],)
        }
        return {
            "metadata": self.of(secret, ())["metadata"],
            "type": secret.get("type"),
            "immutable": secret.get("immutable"),
            "objects": {
                name: without_empty(self.walk({field: obj[field] for field in obj if field not in _TYPE}))
                for name, obj in sorted(objects.items())
            },
        }

    def request(self, csr: Object) -> Object:
        """Of a certificate."""
        requested = x509.load_pem_x509_csr(base64.b64decode(csr["spec"]["request"]))
        key, spec = requested.public_key(), csr["spec"]
        names = [
            str(each.value)
            for extension in requested.extensions
            if isinstance(extension.value, x509.SubjectAlternativeName)
            for each in extension.value
        ]
        conditions = mapping(csr.get("status")).get("conditions") or []
        found: Object = self.walk(
            {
                "name": csr["metadata"]["name"],
                **{name: spec.get(name) for name in ("signerName", "usages", "expirationSeconds", "username")},
                "groups": sorted(spec.get("groups") or ()),
                **_subject(requested.subject),
                "SANs": names,
                "key": f"{'EC' if isinstance(key, ec.EllipticCurvePublicKey) else 'RSA'}PublicKey",
                "conditions": [{name: each.get(name) for name in ("type", "status", "reason")} for each in conditions],
                "issued": bool(mapping(csr.get("status")).get("certificate")),
            }
        )
        return found

    def _of_token(self, name: str, value: Any) -> Any:
        given, other = _OF_TOKENS.get(name, (value, value))
        return value if value == given else other

    def _datum(self, encoded: str) -> Any:
        data = base64.b64decode(encoded)
        if (known := self._credentials(data)) is not None:
            return self.walk(known)
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


def common_names(csr: Object) -> list[str]:
    requested = x509.load_pem_x509_csr(base64.b64decode(csr["spec"]["request"]))
    names: list[str] = _subject(requested.subject)["CN"]
    return names


def without_empty(value: Any) -> Any:
    """Which empty values are written out depends on who writes."""
    match value:
        case dict():
            kept = {name: without_empty(inner) for name, inner in value.items()}
            return {name: inner for name, inner in kept.items() if inner not in (None, {}, [])}
        case list():
            return [without_empty(each) for each in value]
        case _:
            return value


def _documents(secret: Object) -> Iterator[Object]:
    """Also of what no API server takes: charts are rendered whatever is in them."""
    for name, encoded in mapping(secret.get("data")).items():
        content = base64.b64decode(encoded)
        if name.endswith(COMPRESSED_SUFFIX):
            content = decompress(content, limit=_LARGEST)
        yield from filter(None, yaml.safe_load_all(content))


def _state(saved: Object) -> Object:
    """Of a Shoot, with what is packed in it."""

    def unpacked(data: Any) -> Any:
        with suppress(KeyError, TypeError, ValueError, OSError):
            return {"gzip": without_empty(json.loads(gzip.decompress(base64.b64decode(data["state"]))))}
        return data

    def named(*fields: str) -> Any:
        return lambda each: [str(each.get(name) or "") for name in fields]

    own = [{**each, "data": unpacked(each.get("data"))} for each in saved.get("gardener") or ()]
    return {
        "gardener": sorted(own, key=named("type", "name")),
        "extensions": sorted(saved.get("extensions") or (), key=named("kind", "name", "purpose")),
        "resources": sorted(saved.get("resources") or (), key=str),
    }


def _changes_in(warning: str) -> str:
    """What was changed in a webhook, without the words before; selectors are extended in any order."""

    def in_order(found: re.Match[str]) -> str:
        return f"extended with [{' '.join(sorted(re.findall(r'{[^}]*}', found[1])))}]"

    head, _, changes = re.sub(r"extended with \[({.*})\]", in_order, warning).partition(_CHANGES)
    return f"<warning>{changes}" if changes else head


def _done_by(script: str) -> Object:
    """What the script of a Bastion does, in whatever words."""
    return {
        "is a script": script.startswith("#!"),
        "creates the user gardener": "useradd" in script and "gardener" in script,
        "authorises the key": "authorized_keys" in script and "ssh-ed25519 AAAAC3" in script,
        "sudo without password": "NOPASSWD" in script,
        "starts ssh": bool(re.search("systemctl (re)?start ssh", script)),
    }


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
