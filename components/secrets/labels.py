"""Names and labels of Secrets.

Label values are limited: times are seconds since 1970, checksums are decimal or truncated.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NAME = "name"
"""Name of the config."""
MANAGED_BY = "managed-by"
SECRETS_MANAGER = "secrets-manager"
IDENTITY = "manager-identity"
CHECKSUM_OF_CONFIG = "checksum-of-config"
CHECKSUM_OF_SIGNING_CA = "checksum-of-signing-ca"
BUNDLE_FOR = "bundle-for"
PERSIST = "persist"
"""The Secret moves to another Seed with its Shoot."""
ROTATED = "last-rotation-initiation-time"
"""Time of the last rotation; empty if never."""
ISSUED_AT = "issued-at-time"
VALID_UNTIL = "valid-until-time"
RENEW_AFTER_PERCENTAGE = "renew-after-validity-percentage"
USE_DATA_FOR = "secrets-manager-use-data-for-name"
"""Set by users on a Secret: its data is used for the config of this name, instead of new data."""

GARDENLET = "gardenlet"
_LONGEST_LABEL = 63


def selector(identity: str) -> str:
    return f"{MANAGED_BY}={SECRETS_MANAGER},{IDENTITY}={identity}"


PERSISTED = f"{PERSIST}=true"
"""Selects the Secrets that move with a Shoot, those of extensions included."""
OWN_PERSISTED = f"{selector(GARDENLET)},{PERSISTED}"
"""Selects those of the gardenlet."""


def checksum_of_config(described: Mapping[str, Any]) -> str:
    """Checksum of its JSON without empty fields: a field added by a later release changes no name."""
    text = json.dumps(_without_empty(described), sort_keys=True, separators=(",", ":"))
    return str(int(_digest(text)[:16], 16))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        inner = {field: _without_empty(each) for field, each in value.items()}
        return {field: each for field, each in inner.items() if each}
    return value


def checksum_of_authority(data: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for field in sorted(data):
        digest.update(hashlib.sha256(data[field]).digest())
    return digest.hexdigest()[:_LONGEST_LABEL]


def secret_name(name: str, *, of_config: str, of_authority: str = "", rotated: str = "", is_plain: bool = False) -> str:
    """Return the name of a Secret.

    Args:
        name: of the config.
        of_config: its checksum.
        of_authority: checksum of the signing CA.
        rotated: time of the last rotation, as a label.
        is_plain: whether a CA keeps the plain name until it is rotated.
    """
    if is_plain and not rotated:
        return name
    suffix = f"-{_digest(rotated)[:5]}" if rotated else ""
    return f"{name}-{_digest(of_config + of_authority)[:8]}{suffix}"


def of_secret(
    name: str, *, identity: str, of_config: str, of_authority: str, rotated: str, persist: bool, bundle_for: str
) -> dict[str, str]:
    labels = {
        NAME: name,
        MANAGED_BY: SECRETS_MANAGER,
        IDENTITY: identity,
        CHECKSUM_OF_CONFIG: of_config,
        CHECKSUM_OF_SIGNING_CA: of_authority,
        PERSIST: "true" if persist else "",
        BUNDLE_FOR: bundle_for,
    }
    return {**{label: value for label, value in labels.items() if value}, ROTATED: rotated}


def of_life(issued: datetime, valid_until: datetime | None, *, renew_after_percentage: int) -> dict[str, str]:
    return {
        ISSUED_AT: as_label(issued),
        **({VALID_UNTIL: as_label(valid_until)} if valid_until else {}),
        **({RENEW_AFTER_PERCENTAGE: str(renew_after_percentage)} if renew_after_percentage else {}),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def as_label(moment: datetime) -> str:
    return str(int(moment.timestamp()))


def time_of(labels: Mapping[str, str], label: str) -> datetime | None:
    value = labels.get(label, "")
    # 12 digits are beyond any valid time.
    return datetime.fromtimestamp(int(value), UTC) if value.isascii() and value.isdigit() and len(value) < 12 else None
