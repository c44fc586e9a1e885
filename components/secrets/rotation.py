"""Choice of the current and the old Secret, and the time of the next rotation: pure functions."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum, auto

from components.secrets import labels as names
from components.secrets.configs import CA_CERTIFICATE, CA_KEY
from components.secrets.stored import Stored
from kube.x509 import load_certificates

_RENEW_AFTER_PERCENTAGE = 80
_RENEW_BEFORE_END = timedelta(days=10)
OLD_AUTHORITY_OF_A_SEED = timedelta(hours=24)


class Old(Enum):
    """Use of the Secret before a rotation; each step starts when the previous one has taken effect."""

    IN_USE = auto()
    """It verifies, and an old CA signs for servers."""
    VERIFIES = auto()
    """It verifies: servers get certificates of the current CA, clients trust both."""
    IGNORED = auto()
    """Nothing trusts it any more: it is not part of a bundle, and is deleted."""


def old_of_a_seed(issued_at: datetime, now: datetime) -> Old:
    """Use of a Seed's old CA, which is rotated by time only: components have a day for each step."""
    match (now - issued_at) // OLD_AUTHORITY_OF_A_SEED:
        case days if days < 1:
            return Old.IN_USE
        case 1:
            return Old.VERIFIES
        case _:
            return Old.IGNORED


def newest(secrets: Iterable[Stored]) -> Stored | None:
    return max(secrets, key=_age, default=None)


def _age(secret: Stored) -> tuple[float, str]:
    return secret.issued_at, secret.name


def rotation_times(
    secrets: Iterable[Stored], *, requested: Mapping[str, datetime], now: datetime, renews_authorities: bool
) -> dict[str, str]:
    """Time of the last rotation by config, as a label: that of its newest Secret, or now if that needs a renewal.

    Times of requested rotations take precedence. `renews_authorities` also renews CAs before their expiry.
    """
    by_config: dict[str, list[Stored]] = {}
    for secret in secrets:
        by_config.setdefault(secret.config_name, []).append(secret)
    times = {}
    for name, of_config in by_config.items():
        last = newest(of_config)
        assert last is not None
        is_renewed = renews_authorities or CA_KEY not in last.data
        times[name] = names.as_label(now) if is_renewed and must_be_renewed(last.labels, now) else last.rotated
    return {**times, **{name: names.as_label(moment) for name, moment in requested.items()}}


def must_be_renewed(labels: Mapping[str, str], now: datetime) -> bool:
    """Whether most of its lifetime is over, or little of a long one is left. Without an expiry it needs no renewal."""
    since, until = names.time_of(labels, names.ISSUED_AT), names.time_of(labels, names.VALID_UNTIL)
    if since is None or until is None:
        return False
    percentage = labels.get(names.RENEW_AFTER_PERCENTAGE, "")
    share = int(percentage) if percentage.isascii() and percentage.isdigit() else _RENEW_AFTER_PERCENTAGE
    is_long = until - since > 2 * _RENEW_BEFORE_END
    return now >= since + (until - since) * share / 100 or (is_long and now >= until - _RENEW_BEFORE_END)


def old_one(secrets: Iterable[Stored], current: Stored) -> Stored | None:
    """Return the newest other Secret of the same config."""
    return newest(each for each in secrets if each.config_name == current.config_name and each.name != current.name)


def is_over(secret: Stored, now: datetime) -> bool:
    """Whether it is an expired CA, which signs nothing and is not trusted."""
    certificates = load_certificates(secret.data.get(CA_CERTIFICATE))
    return bool(certificates) and certificates[0].not_valid_after_utc <= now
