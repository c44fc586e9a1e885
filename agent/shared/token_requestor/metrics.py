"""Number of tokens, and of tokens whose renewal is overdue; computed at each scrape."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.shared.token_requestor.rules.renewal import renew_time
from agent.shared.token_requestor.token_secret import TokenSecret
from kube.clock import utc_now


class TokenCollector(Collector):
    """Metrics of all token requestors of a process; empty without one, so on all replicas but the leader.

    Args:
        prefix: prefix of the metric's name.
    """

    def __init__(self, prefix: str, *, today: Callable[[], datetime] = utc_now) -> None:
        self._followed: list[Callable[[], Iterable[TokenSecret]]] = []
        self._prefix = prefix
        self._today = today

    def follow(self, secrets: Callable[[], Iterable[TokenSecret]]) -> Callable[[], None]:
        """Count the Secrets of a token requestor; the returned function ends that."""
        self._followed.append(secrets)
        return partial(self._followed.remove, secrets)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        if not self._followed:
            return
        family = GaugeMetricFamily(
            f"{self._prefix}_requested_tokens",
            "Number of tokens in Secrets by state; overdue: missing, or not renewed in time.",
            labels=("state",),
        )
        now = self._today()
        overdue = [is_overdue(secret, now) for secrets in self._followed for secret in secrets()]
        family.add_metric(("overdue",), sum(overdue))
        family.add_metric(("current",), len(overdue) - sum(overdue))
        yield family


def is_overdue(secret: TokenSecret, now: datetime) -> bool:
    """Whether the renewal of the token is overdue, or it was never issued."""
    moment = renew_time(secret.renew_timestamp)
    return moment is None or moment < now
