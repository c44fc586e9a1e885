"""Making keys does not stop the event loop: it runs in threads, which give back the lock of the interpreter."""

import asyncio

from kube.runtime.threads import KEYS
from kube.x509 import make_rsa_key

COUNT = 10


async def test_the_loop_runs_while_keys_are_made() -> None:
    """It sees most of them under way; if making a key held the lock, it would see none."""
    under_way, seen = set[int](), set[int]()

    def make(number: int) -> None:
        under_way.add(number)
        make_rsa_key(3072)
        under_way.discard(number)

    keys = asyncio.gather(*(KEYS.compute(make, number) for number in range(COUNT)))
    while not keys.done():
        seen |= under_way.copy()
        await asyncio.sleep(0.001)
    await keys
    assert len(seen) > COUNT // 2
