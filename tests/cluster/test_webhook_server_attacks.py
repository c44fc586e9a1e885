"""The server bears what anybody who reaches its port may do: a real process, and the attacks that can be run by hand.

Of time nothing is reported here: on a busy machine it reports nothing of the server.
"""

import pytest

from attacks.webhooks import measure

MOST_MEBIBYTES = 200


@pytest.mark.timeout(300)
@pytest.mark.parametrize("attack", ["values", "held", "broken off"])
async def test_memory_stays_small_and_others_are_answered(attack: str) -> None:
    measured = await measure(attack)
    assert measured.peak < MOST_MEBIBYTES
    assert measured.requests > 0
    assert measured.failures == 0
