"""Secrets in the form in which those of the original are recorded: without hashes, times and what is secret."""

import base64
import re

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from kube.objects import Object, labels, metadata
from kube.x509 import Certificate, load_certificates, profile_of

_CHECKSUMS = ("checksum-of-config", "checksum-of-signing-ca")
_TIMES = ("issued-at-time", "valid-until-time")
_HASH = re.compile(r"-[0-9a-f]{8}$")


def summary(secret: Object) -> Object:
    data = {field: base64.b64decode(value) for field, value in secret["data"].items()}
    of_labels = {
        name: "<checksum>" if name in _CHECKSUMS else "<unix>" if name in _TIMES else value
        for name, value in labels(secret).items()
    }
    return {
        "name": _HASH.sub("-<hash>", metadata(secret)["name"]),
        "type": secret["type"],
        "labels": of_labels,
        "data": {field: _content(field, value) for field, value in data.items()},
    }


def _content(field: str, value: bytes) -> object:
    if field == "kubeconfig":
        config = yaml.safe_load(value)
        config["clusters"][0]["cluster"]["certificate-authority-data"] = "<certificate>"
        return yaml.safe_dump(config)
    certificates = load_certificates(value) if field.endswith(".crt") else ()
    return [_certificate(each) for each in certificates] if certificates else "<secret>"


def _certificate(certificate: Certificate) -> Object:
    profile = profile_of(certificate)
    key = certificate.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    usages = ("digital_signature", "key_encipherment", "key_cert_sign")
    flags = [*(each for each in usages if getattr(usage, each)), *(["crl_sign"] if usage.crl_sign else [])]
    extended = [*(["serverAuth"] if profile.is_server else []), *(["clientAuth"] if profile.is_client else [])]
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return {
        "subject": _without_hash(certificate.subject),
        "issuer": _without_hash(certificate.issuer),
        "life": f"{life.days}d",
        "key": f"RSAPublicKey{key.key_size}",
        **({"ca": True} if profile.is_authority else {}),
        "usage": flags,
        **({"extUsage": extended} if extended else {}),
        **({"names": sorted(profile.names)} if profile.names else {}),
    }


def _without_hash(name: x509.Name) -> str:
    return _HASH.sub("-<hash>", name.rfc4514_string())
