"""Makes plans: off the event loop where they are large, and within a budget of memory.

Nobody knows what a Secret unfolds to before it was unfolded. So it is measured first, without keeping anything; then
the plans that are being made share the budget.
"""

import asyncio
from functools import partial

from gardener.managed_resource.decode import DecodeResult, decode_secrets, unfolded_size
from gardener.managed_resource.plan import (
    LIMITS,
    Basis,
    Data,
    Kinds,
    Plan,
    Restriction,
    defined_groups,
    kinds_of,
    plan,
    unrestricted,
)
from gardener.managed_resource.remedies import unserved_error
from gardener.managed_resource.stamps import injected_labels
from kube.runtime.discovery import Discovery, find_all
from kube.runtime.limiter import ByteBudget
from kube.runtime.threads import Thread

_PLANS = Thread("plans")
_OFF_THE_LOOP = 16 * 1024
"""Bytes from which on the work is done in a thread so that requests on the same event loop do not wait for it."""
_COPIES = 8
"""How many times its size a text takes while it is decoded and planned: bytes, characters of up to 4 bytes, JSON."""
_BYTES_OF_VALUE = 300
"""What each value takes while YAML is read, which has at least two characters."""


async def size_of(data: Data) -> int:
    """How many bytes there are to be decoded; what is more than one may have is not counted."""
    contents = [values for _, values in data]
    size = unfolded_size(contents, limit=_OFF_THE_LOOP)
    if size < _OFF_THE_LOOP:
        return size
    return await _PLANS.compute(unfolded_size, contents, limit=LIMITS.total_bytes)


def memory_for(size: int) -> int:
    """The bytes of memory that it takes at most to decode and plan so many bytes."""
    return _COPIES * size + _BYTES_OF_VALUE * min(size // 2, LIMITS.values)


def planning_budget() -> ByteBudget:
    """For all that is planned at once: as much as one may need."""
    return ByteBudget(memory_for(LIMITS.total_bytes))


async def make_plan(
    *,
    basis: Basis,
    data: Data,
    size: int,
    budget: ByteBudget,
    discovery: Discovery,
    managed_by: str,
    only_workloads: bool,
    restriction: Restriction = unrestricted,
) -> Plan:
    """Raises nothing for bad content: that is in the plan's errors and problems.

    With `only_workloads` labels are put on the pod templates of known workloads only.

    Args: size: of the data, see `size_of`.
    """
    planned = partial(
        plan,
        basis,
        data,
        labels=injected_labels(dict(basis.injected_labels), managed_by=managed_by),
        only_workloads=only_workloads,
        restriction=restriction,
    )
    if size < _OFF_THE_LOOP:
        decoded = decode_secrets(data, limits=LIMITS)
        return planned(decoded, await _find_kinds(discovery, decoded))

    async def make_in_threads() -> Plan:
        async with budget.hold(memory_for(size)):
            decoded = await _PLANS.compute(decode_secrets, data, limits=LIMITS)
            return await _PLANS.compute(planned, decoded, await _find_kinds(discovery, decoded))

    # A thread can't be cancelled: until it ends, the memory is in use.
    return await asyncio.shield(asyncio.create_task(make_in_threads()))


async def _find_kinds(discovery: Discovery, decoded: DecodeResult) -> Kinds:
    return await find_all(discovery, kinds_of(decoded), explain=unserved_error, awaited=defined_groups(decoded))
