"""What a pass would have to remove or release, and must not touch: it stays listed, and the pass says why.

Restrictions may be newer than the objects. Nothing of that is forgotten silently, and nothing is tried time and again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from agent.managed_resource.references import key_of_reference
from agent.managed_resource.remove import Leaving, release, remove
from agent.managed_resource.restrictions import no_refusal
from agent.managed_resource.step import Step
from agent.managed_resource.target import Target
from kube.errors import KubeError
from kube.objects import Key, Object

_AT_ONCE = 10


async def kept(
    target: Target, step: Step, leaving: Leaving, *, look_at_all: Callable[[], Awaitable[None]]
) -> dict[str, str]:
    """The object keys of what is there, ours, and may not be touched, with the texts of the errors, in order.

    Args: look_at_all: has the claims of all ManagedResources known: who wants an object gets it.
    """
    if leaving.refusal is no_refusal:
        return {}
    dropped = [each for each in step.dropped if await _is_refused(target, each, leaving)]
    released = [each for each in step.released if await _is_refused(target, each, leaving)]
    if not dropped and not released:
        return {}
    await look_at_all()
    found: dict[str, str] = {}
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def look(reference: Object, *, releasing: bool) -> None:
        async with at_once:
            if releasing:
                text = await release(target, reference, leaving)
            else:
                pending = await remove(target, reference, leaving)
                text = pending.text if pending is not None and pending.is_refused else None
        if text:
            found[key_of_reference(reference)] = text

    await asyncio.gather(
        *(look(reference, releasing=False) for reference in dropped),
        *(look(reference, releasing=True) for reference in released),
    )
    return dict(sorted(found.items()))


async def _is_refused(target: Target, reference: Object, leaving: Leaving) -> bool:
    try:
        resource = await target.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
    except KubeError:
        return False
    return bool(leaving.refusal(resource, Key(reference.get("namespace") or "", reference.get("name") or "")))
