"""What a Bastion must be, and what it takes from its Shoot."""

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise

from gardener.api.garden import SHOOTS
from kube.addresses import parse_cidr
from kube.objects import Object, is_deleting, mapping, mappings, spec, text, texts, uid
from kube.paths import at, mapping_at
from kube.validation import invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child

_PATH = "spec.shootRef.name"
_QUOTED_OR_NOT = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^\s"])+')
_KEY_TYPE = re.compile(r"(ssh|ecdsa|sk)-[-a-z0-9@.]+")


def follow_shoot(write: Write) -> None:
    """Seed and provider are those of the Shoot, whatever is sent; it owns the Bastion from the beginning."""
    name = text(at(write.spec, "shootRef", "name"))
    shoot = write.garden.need(SHOOTS, name, write.namespace)
    if shoot is None:
        return
    wanted = write.own_spec()
    for field, value in (
        ("seedName", at(spec(shoot), "seedName")),
        ("providerType", at(spec(shoot), "provider", "type")),
    ):
        if value:
            wanted[field] = value
        else:
            wanted.pop(field, None)
    if write.is_create:
        reference = SHOOTS.reference(name=name, uid=uid(shoot)) | {"controller": True, "blockOwnerDeletion": True}
        child(write.new, "metadata")["ownerReferences"] = [reference]


def shoot_errors(write: Write) -> Iterator[Finding]:
    name = text(at(write.spec, "shootRef", "name"))
    shoot = write.garden.need(SHOOTS, name, write.namespace)
    if shoot is None:
        yield invalid(_PATH, name, f"shoot {write.namespace}/{name} not found")
        return
    if write.is_create and is_deleting(shoot):
        yield invalid(_PATH, name, "shoot is in deletion")
    if not spec(shoot).get("seedName"):
        yield invalid(_PATH, name, "shoot is not yet assigned to a seed")
    if not _has_ssh(shoot):
        yield invalid(_PATH, name, "ssh access is disabled for worker nodes")


def _has_ssh(shoot: Object) -> bool:
    provider = mapping_at(shoot, "spec", "provider")
    return bool(provider.get("workers")) and at(provider, "workersSettings", "sshAccess", "enabled") is not False


def ingress_errors(write: Write) -> Iterator[Finding]:
    for index, policy in enumerate(mappings(write.spec.get("ingress"))):
        path, block = f"spec.ingress[{index}].ipBlock", mapping(policy.get("ipBlock"))
        cidr = text(block.get("cidr"))
        network = parse_cidr(cidr)
        if network is None:
            yield invalid(f"{path}.cidr", cidr, "invalid CIDR")
        for position, exception in enumerate(texts(block.get("except"))):
            inner = parse_cidr(exception)
            if inner is None:
                yield invalid(f"{path}.except[{position}]", exception, "invalid CIDR")


def key_errors(write: Write) -> Iterator[Finding]:
    key = text(write.spec.get("sshPublicKey"))
    if not any(map(_is_public_key, key.splitlines())):
        yield invalid("spec.sshPublicKey", key, "invalid sshPublicKey")


def _is_public_key(line: str) -> bool:
    """A line of authorized_keys: options, if any, type, key, comment."""
    words = _QUOTED_OR_NOT.findall(line)[:3]
    return any(_is_key(kind, encoded) for kind, encoded in pairwise(words))


def _is_key(kind: str, encoded: str) -> bool:
    """The key begins with its type: a length of four bytes, and the text."""
    if _KEY_TYPE.fullmatch(kind) is None:
        return False
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return False
    named = len(kind).to_bytes(4, "big") + kind.encode()
    return raw.startswith(named) and len(raw) > len(named)
