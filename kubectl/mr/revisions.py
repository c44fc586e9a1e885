"""Revisions: versions of ManagedResources that were applied, and that the agent has kept as Secrets.

Lists read only their metadata, so no values get here. Only revisions listed by the ManagedResource count.
"""

from collections.abc import Mapping, Sequence

from gardener import keys
from gardener.managed_resource.history import (
    CHANGE_CAUSE,
    REVISIONS,
    Revision,
    is_revision,
    kept_secrets,
    listed_in,
    selector_of,
    trusted,
)
from kube.objects import Key, Object, annotations, key, metadata
from kube.resources import SECRETS
from kube.runtime.client import Form, Selection
from kubectl.errors import UserError
from kubectl.mr.desired import values_of
from kubectl.session import Session


async def read_revisions(session: Session, managed_resource: Object) -> list[Object]:
    """Metadata of the Secrets of revisions, the oldest first."""
    own = key(managed_resource)
    selection = Selection(
        own.namespace,
        label_selector=f"{keys.HISTORY_OF}={selector_of(own.name)}",
        field_selector=f"type={keys.REVISION_TYPE}",
    )
    found = await session.source.client.list(SECRETS, selection, form=Form.METADATA)
    by_name = {key(secret): secret for secret in found}
    kept = trusted([Revision.of(secret) for secret in found], managed_resource, listed_in(managed_resource))
    return [by_name[each.secret] for each in kept]


async def read_kept(session: Session, managed_resource: Object, revision: Object) -> list[Object]:
    """Secrets that a revision holds. Raises KubeError; UserError: its content was replaced."""
    name, number = key(revision), number_of(revision)
    secret = await session.source.client.get(SECRETS, name)
    if not any(each.number == number and each.is_kept_in(secret) for each in listed_in(managed_resource)):
        raise UserError(
            f"Secret {name} does not have the content of revision {number}: its digest differs from "
            f"status.{REVISIONS} of ManagedResource {key(managed_resource)}",
            hint="another client has replaced it; choose another revision with --to",
        )
    return kept_in(secret)


def number_of(revision: Object) -> int:
    return Revision.of(revision).number


def digest_of(revision: Object) -> str:
    return Revision.of(revision).digest


def applied_digest(managed_resource: Object) -> str:
    """Digest of the last complete pass; empty if there was none."""
    return str((managed_resource.get("status") or {}).get("secretsDataChecksum") or "")


def current(revisions: Sequence[Object], managed_resource: Object) -> int:
    """Number of the applied revision; 0 if it is none of them."""
    applied = applied_digest(managed_resource)
    return next((number_of(each) for each in reversed(revisions) if digest_of(each) == applied), 0)


def json_of(revision: Object, *, applied: int) -> Object:
    """Displayed fields of a revision: all but its content."""
    notes = annotations(revision)
    found: Object = {
        "revision": number_of(revision),
        "applied": number_of(revision) == applied,
        "time": metadata(revision).get("creationTimestamp"),
        "digest": digest_of(revision),
        "sourceSecrets": [name for name in (notes.get(keys.SOURCE_SECRETS) or "").split(",") if name],
        "cause": notes.get(CHANGE_CAUSE),
        "notKept": notes.get(keys.NOT_KEPT),
        "secret": key(revision).name,
    }
    return {field: value for field, value in found.items() if value is not None}


def contents_of(secret: Object) -> list[tuple[Key, Mapping[str, bytes]]]:
    """Data of a Secret, or of those that are kept in it. Raises UserError."""
    if not is_revision(secret):
        return [(key(secret), values_of(secret))]
    namespace = key(secret).namespace
    return [(Key(namespace, key(kept).name), values_of(kept)) for kept in kept_in(secret)]


def kept_in(secret: Object) -> list[Object]:
    """Secrets that a revision holds. Raises UserError."""
    try:
        return kept_secrets(secret)
    except ValueError as error:
        raise UserError(f"Secret {key(secret)}: {error}") from error
