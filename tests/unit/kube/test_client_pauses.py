"""How long a client waits before it sends a request again that was refused for now."""

import pytest

from kube.runtime.client import pause_before_retry


@pytest.mark.parametrize(
    ("retry_after", "pauses"),
    [
        (0.0, [0.1, 0.2, 0.4, 0.8]),
        (1.0, [1.0, 1.0, 1.0, 1.0]),
        (1e9, [30.0, 30.0, 30.0, 30.0]),
    ],
)
def test_it_waits_as_long_as_it_is_requested_to_within_bounds(retry_after: float, pauses: list[float]) -> None:
    assert [pause_before_retry(retry_after, retries=done) for done in range(4)] == pauses
