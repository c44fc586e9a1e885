"""Attacks on the admission of the garden API: reviews that are small and cost much.

    python -m tests.attacks.garden_reviews

Each is answered by the real engine, without a cluster. The table has the time until it was answered, the time that the
event loop was held, for which all others wait, processor time, and how many reviews of rights it led to.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import orjson

from gardener.api.garden import CLOUD_PROFILES, CREDENTIALS_BINDINGS, MANAGED_SEED_SETS, SHOOTS
from kit.garden_objects import garden_object
from kit.webhooks.garden import Reviews
from kit.webhooks.mutating import state_of
from kube.objects import Object
from webhooks.fair_queue import FairQueue, user_of
from webhooks.garden.access import Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.engine import mutator, validator
from webhooks.garden.kinds.credentials_binding import CREDENTIALS_BINDING
from webhooks.garden.kinds.managed_seed_set import MANAGED_SEED_SET
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.garden.lookups import Lookups
from webhooks.review import Reviewer

_LOOK_SECONDS = 0.005


def _profile() -> Object:
    profile = garden_object(CLOUD_PROFILES, "local")
    profile["spec"]["machineImages"] = [{"name": "os", "versions": [{"version": f"1.0.{n}"} for n in range(100)]}]
    return profile


def _shoot(pools: int) -> Object:
    shoot = garden_object(SHOOTS)
    shoot["spec"]["provider"]["workers"] = [{}] * pools
    return {"operation": "CREATE", "object": shoot}


def _binding(quotas: int) -> Object:
    binding = garden_object(CREDENTIALS_BINDINGS)
    binding["quotas"] = [{"name": f"q{number}", "namespace": "n"} for number in range(quotas)]
    return {"operation": "CREATE", "object": binding}


def _set(labels: int) -> Object:
    old = garden_object(MANAGED_SEED_SETS)
    old["spec"]["template"]["metadata"]["labels"] |= {f"-{number}": "" for number in range(labels)}
    return {"operation": "UPDATE", "object": {**old, "spec": {**old["spec"], "replicas": 2}}, "oldObject": old}


ATTACKS: Mapping[str, tuple[Kind, bool, Object]] = {
    "45,000 pools": (SHOOT, True, _shoot(45_000)),
    "110,000 pools": (SHOOT, True, _shoot(110_000)),
    "110,000 pools, validating": (SHOOT, False, _shoot(110_000)),
    "4,000 quotas": (CREDENTIALS_BINDING, False, _binding(4000)),
    "20,000 wrong labels that stay": (MANAGED_SEED_SET, False, _set(20_000)),
}


async def attack(kind: Kind, is_mutating: bool, request: Object) -> str:
    """A row of the table."""
    reviews, state = Reviews(), state_of(_profile())
    lookups, access = Lookups(state, kind.reads), Access(cast("Any", reviews))
    handler = (mutator if is_mutating else validator)(kind, lookups, access)
    named = {"uid": "u", "name": "x", "namespace": "n", "userInfo": {"username": "eve"}}
    body = orjson.dumps({"request": {**named, **request}})
    endpoint = partial(Reviewer(kind.resource.kind, handler, path="/attacked"), body, "application/json")
    held = asyncio.create_task(_held())
    await asyncio.sleep(2 * _LOOK_SECONDS)
    before, cpu = time.perf_counter(), time.process_time()
    answer = orjson.loads(await FairQueue().work(len(body), user_of(body), endpoint))
    took, spent = time.perf_counter() - before, time.process_time() - cpu
    await asyncio.sleep(2 * _LOOK_SECONDS)
    held.cancel()
    longest = 0.0
    with contextlib.suppress(asyncio.CancelledError):
        longest = await held
    code = answer["response"]["status"]["code"]
    return f"{len(body) // 1000} kB | {code} | {took:.2f} | {longest:.2f} | {spent:.2f} | {len(reviews.requested)} |"


async def _held() -> float:
    """For how long the event loop was held at most, until this is cancelled."""
    longest, last = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.perf_counter()
            longest, last = max(longest, now - last - _LOOK_SECONDS), now
    except asyncio.CancelledError:
        return longest


def main() -> None:
    print("| Review | Size | Code | Answered after, s | Others wait, s | CPU, s | Reviews of rights |")
    print("|---|---|---|---|---|---|---|")
    for name, (kind, is_mutating, request) in ATTACKS.items():
        print(f"| {name} | {asyncio.run(attack(kind, is_mutating, request))}", flush=True)


if __name__ == "__main__":
    main()
