"""Answers of Prometheus to an instant query."""

from collections.abc import Iterator

from agent.controller_manager.seed_autoscaler.rules.prometheus import error_of, fresh, samples_of
from fuzz import driver


def seeds() -> Iterator[bytes]:
    yield from driver.millions(b'{"status":"success","data":{"resultType":"vector","result":[', b"{}]}}")


def target(data: bytes) -> None:
    body = driver.unfolded(data)
    assert len(error_of(500, body)) < 1000
    try:
        samples = samples_of(body)
    except ValueError:
        return
    assert all(amount >= 0 for amount in fresh(samples, 1_700_000_000.0).values())
    assert "" not in samples
