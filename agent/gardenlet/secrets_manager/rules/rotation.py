"""Which of the Secrets that there are is the current one, which the old one, and when there is to be another: pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum, auto

from agent.gardenlet.secrets_manager.rules import labels as names
from agent.gardenlet.secrets_manager.rules.configs import CA_CERTIFICATE, CA_KEY
from agent.gardenlet.secrets_manager.rules.stored import Stored
from kube.x509 import load_certificates

_RENEW_AFTER_PERCENTAGE = 80
_RENEW_BEFORE_END = timedelta(days=10)
OLD_AUTHORITY_OF_A_SEED = timedelta(hours=24)


class Old(Enum):
    """What the Secret before a rotation is good for; each step comes when the one before was seen to work."""

    IN_USE = auto()
    """It verifies, and an old authority signs for servers."""
    VERIFIES = auto()
    """Servers get certificates of the current authority, clients trust both."""
    IGNORED = auto()
    """Nothing trusts it any more: it is no part of a bundle, and deleted."""


def old_of_a_seed(issued_at: datetime, now: datetime) -> Old:
    """For the authority of a Seed, which nothing but time rotates: the components have a day for each step."""
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
    secrets: Iterable[Stored], *, asked: Mapping[str, datetime], now: datetime, renews_authorities: bool
) -> dict[str, str]:
    """For each config, when it was rotated last, as a label: as its newest Secret says, or now, if that is renewed.

    Args:
        secrets: all that there are.
        asked: the times of rotations that somebody has asked for, by config; these win.
        now: the time.
        renews_authorities: whether authorities are renewed before their end, too.
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
    return {**times, **{name: names.as_label(moment) for name, moment in asked.items()}}


def must_be_renewed(labels: Mapping[str, str], now: datetime) -> bool:
    """Whether most of its life is over, or little of a long one is left. What has no end lives for ever."""
    since, until = names.time_of(labels, names.ISSUED_AT), names.time_of(labels, names.VALID_UNTIL)
    if since is None or until is None:
        return False
    percentage = labels.get(names.RENEW_AFTER_PERCENTAGE, "")
    share = int(percentage) if percentage.isascii() and percentage.isdigit() else _RENEW_AFTER_PERCENTAGE
    is_long = until - since > 2 * _RENEW_BEFORE_END
    return now >= since + (until - since) * share / 100 or (is_long and now >= until - _RENEW_BEFORE_END)


def old_one(secrets: Iterable[Stored], current: Stored) -> Stored | None:
    """The newest of the others of the same config."""
    return newest(each for each in secrets if each.config_name == current.config_name and each.name != current.name)


def is_over(secret: Stored, now: datetime) -> bool:
    """Whether it is an authority that has run out: that signs nothing, and nothing trusts it."""
    certificates = load_certificates(secret.data.get(CA_CERTIFICATE))
    return bool(certificates) and certificates[0].not_valid_after_utc <= now
