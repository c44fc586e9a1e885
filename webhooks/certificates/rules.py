"""Decide the next step from the current state.

    a CA ──▶ in the bundle ──▶ in all webhook configurations ──▶ noted ──settled──▶ the server's certificate is of it

A certificate is renewed when a third of its lifetime is left. A new CA joins the old one in the bundle until that
expires; the server's certificate is signed with the new CA only after API servers know it, so they trust the server at
all times. A server without a usable certificate gets one at once: nothing is lost.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from kube.x509 import Certificate, Pair, is_signed_by, names_of

CA_LIFETIME = datetime.timedelta(days=365)
SERVING_LIFETIME = datetime.timedelta(days=90)
SETTLED = datetime.timedelta(minutes=5)
"""Time until all API servers have observed the webhook configurations."""
_MOST_CAS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateState:
    ca: Pair | None = None
    """Newest CA; None if there is no usable one."""
    bundle: tuple[Certificate, ...] = ()
    published_at: datetime.datetime | None = None
    """Time when all configurations contained the bundle with the newest CA."""
    serving: Pair | None = None
    published: bool = True
    """Whether all configurations of ours hold the bundle."""
    waiting_for_others: bool = False
    """Whether a configuration managed by others lacks the newest CA."""


@dataclass(frozen=True, slots=True)
class MakeCa:
    """Put a new CA into the bundle, in addition to these."""

    beside: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class SetBundle:
    certificates: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the bundle into the webhook configurations."""


@dataclass(frozen=True, slots=True)
class NotePublished:
    """Record since when the newest CA is known."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Sign a new certificate of the server with the newest CA."""


Step = MakeCa | SetBundle | Publish | NotePublished | Issue


def renewal_of(certificate: Certificate) -> datetime.datetime:
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return until - (until - since) / 3


def next_step(state: CertificateState, names: Sequence[str], *, now: datetime.datetime) -> Step | None:
    """Return the step that is due now; None if there is none."""
    valid = tuple(ca for ca in state.bundle if ca.not_valid_after_utc > now)
    if state.ca is None or renewal_of(state.ca.certificate) <= now:
        return MakeCa(valid[: _MOST_CAS - 1])
    bundle = (state.ca.certificate, *(ca for ca in valid if ca != state.ca.certificate))[:_MOST_CAS]
    if bundle != state.bundle:
        return SetBundle(bundle)
    if not state.published:
        return Publish()
    if state.published_at is None and not state.waiting_for_others:
        return NotePublished()
    return Issue() if _must_be_issued(state, state.ca, names, now) else None


def _must_be_issued(state: CertificateState, ca: Pair, names: Sequence[str], now: datetime.datetime) -> bool:
    if state.serving is None or state.serving.certificate.not_valid_after_utc <= now:
        return True
    if not _is_due(state.serving.certificate, ca, names, now):
        return False
    return state.published_at is not None and state.published_at + SETTLED <= now


def _is_due(serving: Certificate, ca: Pair, names: Sequence[str], now: datetime.datetime) -> bool:
    is_as_wanted = names_of(serving) == set(names) and is_signed_by(serving, ca.certificate)
    return not is_as_wanted or renewal_of(serving) <= now


def next_time(state: CertificateState, *, now: datetime.datetime) -> datetime.datetime:
    """Time of the next possible step if nothing changes."""
    times = [ca.not_valid_after_utc for ca in state.bundle]
    times += [renewal_of(pair.certificate) for pair in (state.ca, state.serving) if pair]
    if state.published_at is not None:
        times.append(state.published_at + SETTLED)
    return min((time for time in times if time > now), default=now + SETTLED)
