"""How many tokens are reported to be overdue."""

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from agent.shared.token_requestor.metrics import TokenCollector, is_overdue
from agent.shared.token_requestor.token_secret import TokenSecret
from gardener import keys

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def secret(renew_timestamp: str | None) -> TokenSecret:
    annotated = {} if renew_timestamp is None else {keys.TOKEN_RENEW_TIMESTAMP: renew_timestamp}
    return TokenSecret.of({"metadata": {"namespace": "n", "name": "s", "uid": "u", "annotations": annotated}})


@pytest.mark.parametrize(
    ("renew_timestamp", "expected"),
    [
        ("2026-03-01T12:00:01Z", False),
        ("2026-03-01T11:59:59Z", True),
        ("2026-03-01T13:00:00+02:00", True),
        ("soon", True),
        (None, True),
    ],
)
def test_a_token_is_overdue_after_its_time_or_if_that_is_not_known(renew_timestamp: str | None, expected: bool) -> None:
    assert is_overdue(secret(renew_timestamp), NOW) is expected


def test_tokens_are_counted_once_a_user_looks_after_them() -> None:
    collector, registry = TokenCollector("gardenlet", today=lambda: NOW), CollectorRegistry()
    registry.register(collector)
    assert [sample for family in registry.collect() for sample in family.samples] == []
    unfollow = collector.follow(lambda: map(secret, ["2026-03-02T00:00:00Z", None]))
    collector.follow(lambda: [secret("2026-03-03T00:00:00Z")])
    name = "gardenlet_requested_tokens"
    assert registry.get_sample_value(name, {"state": "current"}) == 2
    assert registry.get_sample_value(name, {"state": "overdue"}) == 1
    unfollow()
    assert registry.get_sample_value(name, {"state": "overdue"}) == 0
