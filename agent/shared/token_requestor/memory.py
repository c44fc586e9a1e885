"""State of a Secret between passes. All of it is in memory only: a restart may lose it.

Times are those of a monotonic clock. The wall clock is used once for each renew timestamp, when it is first read; from
then on it may jump, and neither are all tokens renewed at once nor any too late.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from agent.shared.token_requestor.rules.renewal import renew_time
from agent.shared.token_requestor.rules.token_spec import TokenSpec
from agent.shared.token_requestor.token_secret import TokenSecret
from kube.objects import Key

LONGEST_PAUSE = 60.0
"""Maximum pause between two TokenRequests for a Secret, in seconds."""
_FORGIVEN_AFTER = 600.0
REVIEW_SECONDS = 3600.0


@dataclass(slots=True)
class Pace:
    """Rate of token requests for one Secret, with growing pauses.

    The first requests may follow each other closely, as they do when a user experiments. If they continue, another
    writer removes the token, or the API server does not accept the token that it issued.
    """

    count: int = 0
    last: float = float("-inf")

    def wait(self, now: float, *, rejected: bool = False) -> float:
        """Seconds until the next request; after a rejection of the present token always the maximum pause."""
        if not self.count or now - self.last >= _FORGIVEN_AFTER:
            return 0.0
        pause = LONGEST_PAUSE if rejected else min(2.0 ** (self.count - 1), LONGEST_PAUSE)
        return max(self.last + pause - now, 0.0)

    def note(self, now: float) -> None:
        self.count = 1 if now - self.last >= _FORGIVEN_AFTER else min(self.count + 1, 16)
        self.last = now


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token that the API server has issued."""

    spec: TokenSpec
    token: str = field(repr=False)
    renew_at: float

    def fits(self, spec: TokenSpec, now: float) -> bool:
        """Whether the token matches the request, and is not due for renewal."""
        same = (self.spec.account, self.spec.seconds) == (spec.account, spec.seconds)
        return same and now < self.renew_at


@dataclass(slots=True)
class Memory:
    """State of one Secret."""

    uid: str
    pace: Pace = field(default_factory=Pace)
    issued: Issued | None = None
    """Token that is not stored yet: if storing fails, the next pass uses it instead of requesting another."""
    written: TokenSecret | None = None
    """Secret after the last own write, to distinguish its event from others."""
    _renew: tuple[str, float] = ("", 0.0)
    _accepted: tuple[bytes, float] = (b"", 0.0)

    def renew_at(self, timestamp: str, *, now: float, today: datetime) -> float:
        """Time at which a token with this renew timestamp is due; now if the timestamp can't be read."""
        if self._renew[0] != timestamp:
            moment = renew_time(timestamp)
            self._renew = (timestamp, now + (moment - today).total_seconds() if moment else now)
        return self._renew[1]

    def set_renew_at(self, timestamp: str, at: float) -> None:
        self._renew = (timestamp, at)

    def review_at(self, token: bytes) -> float:
        """Time of the next check that the API server accepts this token; 0 if there was none yet."""
        return self._accepted[1] if self._accepted[0] == _fingerprint(token) else 0.0

    def set_review_at(self, token: bytes, at: float) -> None:
        self._accepted = (_fingerprint(token), at)


class Memories:
    """State of all Secrets, by namespace and name."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Memory] = {}

    def of(self, secret: TokenSecret) -> Memory:
        """State of a Secret; a recreated one starts without."""
        memory = self._by_key.get(secret.key)
        if memory is None or memory.uid != secret.uid:
            memory = self._by_key[secret.key] = Memory(secret.uid)
        return memory

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def is_foreign(self, secret: TokenSecret) -> bool:
        """Whether the Secret differs from the last own write."""
        memory = self._by_key.get(secret.key)
        return memory is None or memory.written != secret

    def __len__(self) -> int:
        return len(self._by_key)


def _fingerprint(token: bytes) -> bytes:
    return hashlib.blake2b(token, digest_size=16).digest()
