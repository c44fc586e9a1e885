"""Applied versions of a ManagedResource, kept as Secrets for a roll-back.

A kept version is called a revision, as those of Deployments are. It holds the data of all Secrets that the
ManagedResource named, in one compressed value; everything else is in its metadata, so lists need no values:

    name          <ManagedResource>-history-<number>
    type          `keys.REVISION_TYPE`, so that it is not mistaken for a Secret with manifests
    immutable     true
    owner         the ManagedResource, so it is deleted with it
    labels        history-of: finds all of one ManagedResource
    annotations   revision, digest, source-secrets, and the change-cause of that time

A version that is too large for a Secret becomes a revision without data, and with a note: it was applied, too.

Users who may create Secrets can create some that look like this. So `status.revisions` of the ManagedResource lists
those that were kept, with the SHA-256 of their data, and only listed ones count: a revision is the immutable Secret of
that name and type whose data has that digest.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import brotli
import orjson

from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.decode import COMPRESSED_SUFFIX, LARGEST_SECRET, Limits, decompress
from kube.objects import (
    Key,
    Object,
    annotations,
    is_deleting,
    key,
    labels,
    mappings,
    metadata,
    resource_version,
    text,
    uid,
)
from kube.yaml import DialectError

DATA_KEY = f"secrets.json{COMPRESSED_SUFFIX}"
CHANGE_CAUSE = "kubernetes.io/change-cause"
"""Annotation that `kubectl rollout history` has established."""
_QUALITY = 9
"""Compression quality of Brotli, as for bundles."""
_LONGEST = 8 * Limits().total_bytes
"""Bytes that a revision may unfold to: in JSON a byte takes up to six."""
_LONGEST_CAUSE = 1024
_MOST_NAMES = 20
"""Maximum number of Secrets in the annotation; the data has them all."""
_LONGEST_NAME, _LONGEST_LABEL, _HASH_DIGITS = 253, 63, 8
_NUMBER = re.compile("[1-9][0-9]{0,8}")

REVISIONS = "revisions"
"""The field of the status."""
_LONGEST_DIGEST = 64

Contents = Sequence[tuple[str, Mapping[str, bytes]]]
"""The names of Secrets, with their data."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Metadata of the Secret of a revision."""

    secret: Key
    uid: str
    resource_version: int
    owner: str
    """The uid of the ManagedResource."""
    number: int
    digest: str
    """The `status.secretsDataChecksum` with which it was applied."""

    @classmethod
    def of(cls, secret: Object) -> Self:
        """Read the metadata; the number is 0 if it is invalid."""
        notes = annotations(secret)
        number = notes.get(keys.REVISION) or ""
        owners = [text(each.get("uid")) for each in mappings(metadata(secret).get("ownerReferences"))]
        return cls(
            key(secret),
            uid(secret),
            resource_version(secret),
            owners[0] if owners else "",
            int(number) if _NUMBER.fullmatch(number) else 0,
            (notes.get(keys.REVISION_DIGEST) or "")[:_LONGEST_DIGEST],
        )


def selector_of(name: str) -> str:
    """The value of the label `history-of`, for the name of a ManagedResource."""
    return _short(name, _LONGEST_LABEL)


def ours(found: Sequence[Revision], managed_resource: Object) -> list[Revision]:
    """Revisions of a ManagedResource and of no earlier one with its name, the oldest first."""
    own = uid(managed_resource)
    return sorted((each for each in found if each.owner == own and each.number), key=lambda each: each.number)


@dataclass(frozen=True, slots=True)
class Listed:
    """A revision in the status of its ManagedResource."""

    number: int
    secret: str
    """The name of its Secret."""
    checksum: str
    """The `status.secretsDataChecksum` with which it was applied."""
    digest: str
    """Digest of its data, see `digest_of_data`."""

    @classmethod
    def of(cls, revision: Revision, secret: Object) -> Self:
        """Entry of a revision. Args: secret: with its data."""
        return cls(revision.number, revision.secret.name, revision.digest, digest_of_data(secret))

    def entry(self) -> Object:
        return {"revision": self.number, "secret": self.secret, "checksum": self.checksum, "digest": self.digest}

    def is_kept_in(self, secret: Object) -> bool:
        """Whether a Secret, with its data, is this revision."""
        is_fixed = secret.get("type") == keys.REVISION_TYPE and secret.get("immutable") is True
        return is_fixed and key(secret).name == self.secret and digest_of_data(secret) == self.digest


def listed_in(managed_resource: Object) -> list[Listed]:
    """Revisions in the status, the oldest first."""
    entries = mappings((managed_resource.get("status") or {}).get(REVISIONS))
    found = []
    for each in entries:
        number = each.get("revision")
        if isinstance(number, int) and number > 0:
            found.append(Listed(number, *(text(each.get(field)) for field in ("secret", "checksum", "digest"))))
    return sorted(found, key=lambda one: one.number)


def trusted(found: Sequence[Revision], managed_resource: Object, listed: Sequence[Listed]) -> list[Revision]:
    """Listed revisions of a ManagedResource, the oldest first; by their metadata alone."""
    known = {(each.secret, each.number, each.checksum) for each in listed}
    own = ours(found, managed_resource)
    return [each for each in own if (each.secret.name, each.number, each.digest) in known]


def digest_of_data(secret: Object) -> str:
    """SHA-256, in hex, of the content of a revision; of nothing if its content was not kept."""
    value = text((secret.get("data") or {}).get(DATA_KEY))
    return hashlib.sha256(base64.b64decode(value)).hexdigest()


def is_same(secret: Object, wanted: Object) -> bool:
    """Whether an existing Secret is the revision to be created, kept by an attempt whose result is unknown."""
    fields = ("type", "immutable", "data")
    is_equal = all((secret.get(field) or None) == (wanted.get(field) or None) for field in fields)
    found, own = Revision.of(secret), Revision.of(wanted)
    is_own = (found.owner, found.number, found.digest) == (own.owner, own.number, own.digest)
    return is_equal and is_own and not is_deleting(secret)


def surplus(revisions: Sequence[Revision], limit: int) -> Sequence[Revision]:
    """Revisions to prune, from the sorted ones."""
    return revisions[: max(len(revisions) - limit, 0)]


# --- writing


def packed(contents: Contents) -> bytes:
    """Everything in these Secrets, compressed: a List of their manifests, with `stringData` where that is possible."""
    items = [_manifest(name, data) for name, data in contents]
    body = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    compressed: bytes = brotli.compress(body, quality=_QUALITY)
    return compressed


def _manifest(name: str, data: Mapping[str, bytes]) -> Object:
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for data_key, value in data.items():
        try:
            texts[data_key] = value.decode()
        except UnicodeDecodeError:
            others[data_key] = base64.b64encode(value).decode()
    fields = {"stringData": texts, "data": others}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        **{field: values for field, values in fields.items() if values},
    }


def revision_secret(
    managed_resource: Object, *, number: int, digest: str, names: Sequence[str], value: bytes, mark: str = ""
) -> Object:
    """The Secret to create.

    Args:
        managed_resource: its owner.
        number: one more than that of the last one.
        digest: identifies the content.
        names: of the Secrets that it holds.
        value: made by `packed`.
        mark: makes the name unguessable.
    """
    own, cause = key(managed_resource), annotations(managed_resource).get(CHANGE_CAUSE)
    suffix = f"-history-{number}{mark and '-'}{mark}"
    notes = {
        keys.REVISION: str(number),
        keys.REVISION_DIGEST: digest,
        keys.SOURCE_SECRETS: ",".join([*names[:_MOST_NAMES], *(["…"] if len(names) > _MOST_NAMES else [])]),
    }
    if cause:
        notes[CHANGE_CAUSE] = cause if len(cause) <= _LONGEST_CAUSE else f"{cause[:_LONGEST_CAUSE]}…"
    fits = len(value) <= LARGEST_SECRET
    if not fits:
        notes[keys.NOT_KEPT] = f"it has {len(value)} bytes when compressed, but a Secret holds at most {LARGEST_SECRET}"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": own.namespace,
            "name": f"{_short(own.name, _LONGEST_NAME - len(suffix))}{suffix}",
            "labels": {keys.HISTORY_OF: selector_of(own.name)},
            "annotations": notes,
            "ownerReferences": [
                {
                    **MANAGED_RESOURCES.type_meta,
                    "name": own.name,
                    "uid": uid(managed_resource),
                }
            ],
        },
        "type": keys.REVISION_TYPE,
        "immutable": True,
        "data": {DATA_KEY: base64.b64encode(value).decode()} if fits else {},
    }


def _short(name: str, length: int) -> str:
    """The name if it is short enough, or its start and a hash."""
    if len(name) <= length:
        return name
    hashed = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: length - _HASH_DIGITS - 1]}-{hashed}"


# --- reading


def is_revision(secret: Object) -> bool:
    return secret.get("type") == keys.REVISION_TYPE and keys.HISTORY_OF in labels(secret)


def kept_secrets(secret: Object) -> list[Object]:
    """The manifests of the Secrets in a revision.

    Raises:
        ValueError: it has none, or they are invalid.
    """
    if reason := annotations(secret).get(keys.NOT_KEPT):
        raise ValueError(f"its content was not kept: {reason}")
    try:
        value = base64.b64decode((secret.get("data") or {})[DATA_KEY])
        found: Any = orjson.loads(decompress(value, limit=_LONGEST))
        items: list[Object] = [item for item in found["items"] if item["kind"] == "Secret" and key(item).name]
    except (DialectError, KeyError, TypeError, ValueError) as error:
        raise ValueError("its content can't be read") from error
    return items
