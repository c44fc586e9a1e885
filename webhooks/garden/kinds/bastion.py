"""Bastions: machines for temporary access to the nodes of a Shoot."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from gardener.api.garden import SHOOTS
from gardener.api.garden.bastion import BASTION as DEFINITION
from kube.addresses import parse_cidr
from kube.clock import format_time, parse_time, utc_now
from kube.objects import Object, is_deleting, mapping, mappings, spec, text, texts, uid
from kube.paths import at, mapping_at
from kube.validation import invalid
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.metadata import creator_stays, set_creator
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child

_PATH = "spec.shootRef.name"
_QUOTED_OR_NOT = re.compile(r'(?:"(?:\\(?:.|\Z)|[^"\\])*(?:"|\Z)|[^\s"])+')
"""An unclosed quote extends to the end of the text, so that later quotes need no search."""
_KEY_TYPE = re.compile(r"(ssh|ecdsa|sk)-[-a-z0-9@.]+")


def follow_shoot(write: Write) -> None:
    """Set Seed and provider to those of the Shoot; a new Bastion gets the Shoot as owner."""
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
    """The Shoot can have a Bastion."""
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
    """Whether a line is one of authorized_keys: options, if any, type, key, comment."""
    words = _QUOTED_OR_NOT.findall(line)[:3]
    return any(_is_key(kind, encoded) for kind, encoded in pairwise(words))


def _is_key(kind: str, encoded: str) -> bool:
    """Whether the key begins with its type: a length of four bytes, and the text."""
    if _KEY_TYPE.fullmatch(kind) is None:
        return False
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return False
    named = len(kind).to_bytes(4, "big") + kind.encode()
    return raw.startswith(named) and len(raw) > len(named)


# --- how long it lives: an hour after its last heartbeat; users cannot extend it


TIME_TO_LIVE = timedelta(hours=1)
_CLOCK_SKEW = timedelta(seconds=30)
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Times beyond these could leave the supported years, or those of four digits, by time zones and added hours."""


def set_expiration(write: Write) -> None:
    status = mapping(write.new.get("status"))
    beat = _heartbeat(write.new)
    if beat is not None:
        status["expirationTimestamp"] = format_time(beat + TIME_TO_LIVE)
    else:
        status.pop("expirationTimestamp", None)


def heartbeat_errors(write: Write, *, now: Callable[[], datetime] = utc_now) -> Iterator[Finding]:
    beat = _heartbeat(write.new)
    if beat is not None and beat > now() + _CLOCK_SKEW:
        yield invalid("status.lastHeartbeatTimestamp", format_time(beat), "must not be in the future")


def _heartbeat(bastion: Object) -> datetime | None:
    """Time of the last heartbeat; None if there is none, or if the API server will refuse it."""
    try:
        beat = parse_time(text(mapping(bastion.get("status")).get("lastHeartbeatTimestamp")))
    except ValueError:
        return None
    return min(max(beat, _FIRST), _LAST)


# --- the kind


BASTION = Kind(
    definition=DEFINITION,
    mutations=(follow_shoot, set_creator),
    asks=operations.bastion,
    checks=(key_errors, ingress_errors),
    references=(shoot_errors,),
    changes=(creator_stays,),
    status_mutations=(set_expiration,),
    status_checks=(heartbeat_errors,),
    reads=(SHOOTS,),
)
