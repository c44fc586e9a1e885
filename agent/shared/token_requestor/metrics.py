"""How many tokens there are, and how many should have been renewed by now; computed when it is scraped."""

from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.shared.token_requestor.rules import renew_time
from agent.shared.token_requestor.watched import TokenSecret
from kube.clock import utc_now


class TokenCollector(Collector):
    """Of the Secrets that it was last given to `follow`; empty before that, so on all replicas but the leader."""

    def __init__(self, *, today: Callable[[], datetime] = utc_now) -> None:
        self._secrets: Callable[[], Iterable[TokenSecret]] | None = None
        self._prefix = ""
        self._today = today

    def follow(self, secrets: Callable[[], Iterable[TokenSecret]], *, prefix: str) -> None:
        """Args:
        secrets: those that this process looks after.
        prefix: of the metric's name.
        """
        self._secrets, self._prefix = secrets, prefix

    def collect(self) -> Iterable[GaugeMetricFamily]:
        if self._secrets is None:
            return
        family = GaugeMetricFamily(
            f"{self._prefix}_requested_tokens",
            "Tokens that are kept in Secrets; overdue are those that are not there, or not renewed in time.",
            labels=("state",),
        )
        now = self._today()
        overdue = [is_overdue(secret, now) for secret in self._secrets()]
        family.add_metric(("overdue",), sum(overdue))
        family.add_metric(("current",), len(overdue) - sum(overdue))
        yield family


def is_overdue(secret: TokenSecret, now: datetime) -> bool:
    """Whether its token is to be renewed; also if it never got one."""
    moment = renew_time(secret.renew_timestamp)
    return moment is None or moment < now


requested_tokens = TokenCollector()
REGISTRY.register(requested_tokens)
