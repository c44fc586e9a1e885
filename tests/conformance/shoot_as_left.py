"""The namespace of a Shoot as the original left it at a recorded moment, with newly generated keys.

Names, labels and texts are the recorded ones. What the recording leaves out is filled in as the original would have:
hashes of names and checksums (which only it can compute) are numbers that differ where the recorded ones differ,
certificates are issued again by the authority that their issuer names, and times, tokens and addresses are made up.

    left = AsLeft(moment, shoot_uid=..., seed_uid=..., cluster_ip=...)
    left.secrets()      of the secrets manager
    left.others()       all else in the seed, in an order in which it can be created
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from components.secrets import labels as names
from conformance.seed_objects import Name
from conformance.shoot_objects import in_the_garden, in_the_seed, managed_resources, status_of_the_shoot
from gardener.keys import REFERENCE_PREFIX
from gardener.managed_resource.bundle import managed_resource
from gardener.references import annotation_key, make_unique
from kube.clock import format_time, utc_now
from kube.objects import Object, labels, metadata
from kube.x509 import Pair, Profile, make_from_profile, make_rsa_key, rsa_key_pem

ROTATED = utc_now().replace(microsecond=0) - timedelta(days=30)
"""When each rotation was requested that has left something."""
ISSUED = ROTATED - timedelta(days=1)
_RENEWED = ROTATED + timedelta(days=60)
"""When tokens are."""
TOKEN = "token"
ADDRESS = "10.0.0.1"
_LIFE = timedelta(days=3653)
_NAME = re.compile(r"(?P<base>[a-z0-9.-]+?)-<hash(?:-(?P<number>\d+))?>")
_CERTIFICATE = re.compile(r"<certificate (\{.*?\})>\n?")
_ENCODED = re.compile(r"certificate-authority-data: ((?:<certificate \{.*?\}>\n?)+)")
_PROBE = "Bearer <key>"


@cache
def _key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """The same for a name, since making one takes long. Args: name: of what has it."""
    return make_rsa_key(bits)


def _number(name: str) -> int:
    """Of a recorded name: how many of this base were there before, in the whole recording, and itself."""
    found = re.search(r"<hash-(\d+)>$", name)
    return int(found[1]) if found else 1


def _hash(base: str, number: str | None) -> str:
    return hashlib.sha256(f"{base}/{number or 1}".encode()).hexdigest()[:8]


@dataclass(kw_only=True)
class AsLeft:
    """Attributes:
    shoot_uid, seed_uid: of the objects in the garden.
    cluster_ip: of the Service of the API server.
    """

    moment: str
    shoot_uid: str = "shoot-uid"
    seed_uid: str = "seed-uid"
    cluster_ip: str = ADDRESS
    _names: dict[str, str] = field(default_factory=dict)
    """Recorded name -> the one that is used."""
    _certificates: dict[str, Pair] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in in_the_seed(self.moment):
            name = metadata(each)["name"]
            if labels(each).get(names.MANAGED_BY) == names.SECRETS_MANAGER:
                rotated = labels(each)[names.ROTATED]
                suffix = f"-{hashlib.sha256(names.as_label(ROTATED).encode()).hexdigest()[:5]}" if rotated else ""
                self._names[name] = self._with_hash(name) + suffix
        # Names that follow from contents come last: these have the others in them.
        for each in self._collectable():
            self._names[metadata(each)["name"]] = metadata(self._unique(each))["name"]

    def _collectable(self) -> list[Object]:
        return [
            each
            for each in in_the_seed(self.moment)
            if each["kind"] in {"ConfigMap", "Secret"}
            and "garbage-collectable" in str(labels(each))
            and not metadata(each)["name"].startswith(("managedresource-", "referenced-resources"))
        ]

    def _with_hash(self, name: str) -> str:
        return _NAME.sub(lambda found: f"{found['base']}-{_hash(found['base'], found['number'])}", name)

    # --- texts

    def _filled(self, value: Any) -> Any:
        """With names, uids and addresses in place of what was left out."""
        if isinstance(value, dict):
            inner = {name: self._filled(each) for name, each in value.items()}
            return dict(self._reference(name, each) for name, each in inner.items())
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _reference(self, name: str, value: Any) -> tuple[str, Any]:
        if not name.startswith(REFERENCE_PREFIX):
            return name, value
        return annotation_key(name.removeprefix(REFERENCE_PREFIX).partition("-")[0], value), value

    def _text(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        for placeholder, filled in (
            ("--<uid>", f"--{self.shoot_uid}"),
            ("-<uid>-", f"-{self.shoot_uid}-"),
            ("<cluster-ip>", self.cluster_ip),
            ("<lb-ip>", ADDRESS),
            ("<time>", format_time(_RENEWED)),
            (_PROBE, f"Bearer {TOKEN}"),
        ):
            text = text.replace(placeholder, filled)
        return text.replace("<uid>", self.seed_uid)

    # --- certificates and keys

    def _certificate(self, described: Object) -> Pair:
        """The same for the same description."""
        text = json.dumps(described, sort_keys=True)
        if text not in self._certificates:
            subject = self._subject(described["subject"])
            profile = Profile(
                common_name=subject,
                names=tuple(described.get("names", ())),
                is_server="serverAuth" in described.get("extUsage", ()),
                is_client="clientAuth" in described.get("extUsage", ()),
                is_authority=described.get("ca", False),
            )
            issuer = None if described["issuer"] == described["subject"] else self._authority(described["issuer"])
            key = _key(subject if profile.is_authority else "leaf")
            self._certificates[text] = make_from_profile(profile, key, ca=issuer, now=ISSUED, lifetime=_LIFE)
        return self._certificates[text]

    def _subject(self, subject: str) -> str:
        name = subject.removeprefix("CN=")
        return self._names.get(name, name)

    def _authority(self, subject: str) -> Pair:
        for each in in_the_seed(self.moment):
            if each["kind"] == "Secret" and "ca.crt" in each.get("data", {}):
                (described,) = map(json.loads, _CERTIFICATE.findall(each["data"]["ca.crt"]))
                if described["subject"] == subject:
                    return self._certificate(described)
        raise LookupError(subject)

    def _certificates_in(self, text: str) -> str:
        return _CERTIFICATE.sub(lambda found: self._certificate(json.loads(found[1])).certificate_pem.decode(), text)

    # --- Secrets

    def _data(self, secret: Object) -> dict[str, str]:
        name = metadata(secret)["name"]
        return {
            of: base64.b64encode(self._content(name, of, text, secret)).decode() for of, text in secret["data"].items()
        }

    def _content(self, name: str, of: str, text: str, secret: Object) -> bytes:
        match of:
            case "ca.crt" | "tls.crt" | "bundle.crt":
                return self._certificates_in(text).encode()
            case "ca.key":
                (described,) = map(json.loads, _CERTIFICATE.findall(secret["data"]["ca.crt"]))
                return rsa_key_pem(self._certificate(described).key)
            case "tls.key":
                return rsa_key_pem(_key("leaf"))
            case "id_rsa":
                return rsa_key_pem(_key(self._names[name], 4096))
            case "bundle.key":
                return b"".join(rsa_key_pem(_key(each, 4096)) for each in self._token_keys(text.count("<key>")))
            case "kubeconfig":
                return self._kubeconfig(text).encode()
            case "secret":
                return self._encryption_secret(secret["data"]["key"]).encode()
            case "encryption-configuration.yaml":
                return re.sub(
                    r"name: (key\d+)(\s+)secret: <key>",
                    lambda found: f"name: {found[1]}{found[2]}secret: {self._encryption_secret(found[1])}",
                    text,
                ).encode()
            case _:
                return self._text(text).replace("<key>", TOKEN).encode()

    def _token_keys(self, count: int) -> list[str]:
        """Names of the newest keys for tokens, newest first."""
        found = [each for each in self._names if re.match(r"service-account-key-<hash", each)]
        return [self._names[each] for each in sorted(found, key=_number, reverse=True)][:count]

    def _encryption_secret(self, key: str) -> str:
        return base64.b64encode(hashlib.sha256(key.encode()).digest()).decode()

    def _kubeconfig(self, text: str) -> str:
        def bundle(found: re.Match[str]) -> str:
            pem = self._certificates_in(found[1])
            return f"certificate-authority-data: {base64.b64encode(pem.encode()).decode()}\n"

        return _ENCODED.sub(bundle, text).replace("<key>", TOKEN)

    def _unique(self, obj: Object) -> Object:
        """A copy, named after its content."""
        name = re.sub(r"-<hash(?:-\d+)?>$", "", metadata(obj)["name"])
        data = self._data(obj) if obj["kind"] == "Secret" else self._filled(obj["data"])
        return make_unique({**obj, "data": data, "metadata": {**metadata(obj), "name": name}})

    def secrets(self) -> Iterator[Object]:
        """Of the secrets manager, without a namespace."""
        for each in in_the_seed(self.moment):
            if labels(each).get(names.MANAGED_BY) == names.SECRETS_MANAGER:
                name = metadata(each)["name"]
                meta = {"name": self._names[name], "labels": self._labels(name, labels(each))}
                yield {**each, "metadata": meta, "data": self._data(each)}

    def _labels(self, name: str, recorded: dict[str, str]) -> dict[str, str]:
        issued = ISSUED + timedelta(minutes=_number(name))
        filled = {
            names.CHECKSUM_OF_CONFIG: str(int(_hash(name, "config"), 16)),
            names.CHECKSUM_OF_SIGNING_CA: hashlib.sha256(name.encode()).hexdigest()[:63],
            names.ISSUED_AT: names.as_label(issued),
            names.VALID_UNTIL: names.as_label(issued + _LIFE),
        }
        rotated = {names.ROTATED: names.as_label(ROTATED)} if recorded[names.ROTATED] else {}
        return {each: filled.get(each, value) for each, value in recorded.items()} | rotated

    # --- all else

    def others(self, *, leaves_out: Callable[[Object], bool] = lambda _: False) -> Iterator[Object]:
        """In the namespace, and the namespace itself; what ManagedResources have is not there."""
        for each in sorted(in_the_seed(self.moment), key=lambda obj: obj["kind"] != "Namespace"):
            is_bundle = metadata(each)["name"].startswith(("managedresource-", "referenced-resources"))
            if labels(each).get(names.MANAGED_BY) == names.SECRETS_MANAGER or is_bundle or leaves_out(each):
                continue
            filled: Object = self._filled({field: value for field, value in each.items() if field != "status"})
            # Their uids are others, by which a garbage collector would remove it.
            metadata(filled).pop("ownerReferences", None)
            if each["kind"] == "Secret":
                filled["data"] = self._data(each)
            yield filled
        for name, each in managed_resources(self.moment).items():
            objects = self._filled(each["objects"]) if name != _NOT_VALID else []
            secret, managed = managed_resource(name, each["namespace"], objects, labels=each["metadata"].get("labels"))
            yield secret
            yield {**managed, "spec": {**each["spec"], "secretRefs": managed["spec"]["secretRefs"]}}

    def shoot(self) -> Object:
        """Without its status."""
        filled: Object = self._filled(in_the_garden(self.moment)[Name("Shoot", "a")])
        return filled

    def status(self) -> Object:
        """Of the Shoot."""
        filled: Object = self._filled(status_of_the_shoot(self.moment))
        return filled


_NOT_VALID = "kube-apiserver-sni"
"""Is left empty: no kinds of Istio are served."""
