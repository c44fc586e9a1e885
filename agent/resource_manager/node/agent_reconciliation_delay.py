"""The controller `node-agent-reconciliation-delay`: spreads the delays of node agents evenly.

Node agents act on a new configuration after a delay from an annotation of their Node, so that the agents of a cluster
do not all restart the same service at once. Each delay depends on the number of Nodes: all Nodes are reconciled in one
pass when one was created or deleted, or a delay was changed.

Only Nodes with a different annotation are written, a few at a time. While Nodes come and go, delays are left alone for
a moment, since each change would affect all delays.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import structlog

from agent.resource_manager.common.views import ALL_NODES, NODES_VIEW, NodeMetadata
from agent.resource_manager.context import Context
from gardener import keys
from gardener.keys import RECONCILIATION_DELAY
from kube.clock import format_duration
from kube.errors import Conflict, Forbidden, KubeError, NotFound
from kube.objects import Key, annotations, is_truthy, key, label_selector_text, resource_version
from kube.resources import NODES, SECRETS
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, Queue
from kube.runtime.priorities import CHANGE

# --- rules


def delays(names: Iterable[str], *, least: float, most: float) -> dict[str, str]:
    """Return the annotation of each Node: from the minimum, in byte order of names, to below the maximum.

    Args: least, most: seconds.
    """
    ordered = sorted(names, key=str.encode)
    if not ordered:
        return {}
    step = (most - least) / len(ordered)
    # Truncated to whole nanoseconds, not rounded, as in the original.
    return {name: format_duration(int((least + number * step) * 1e9) / 1e9) for number, name in enumerate(ordered)}


# --- a pass


QUIET_SECONDS = 1.0
"""Seconds without a change before delays are computed."""
LONGEST_WAIT_SECONDS = 10.0
"""Seconds after which they are computed in any case."""

_AT_ONCE = 10
_ATTEMPTS = 5
_CONFIGURATIONS = Selection(
    namespace="kube-system", label_selector=label_selector_text({keys.ROLE: keys.ROLE_OPERATING_SYSTEM_CONFIG})
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Debounce:
    """Delays work while Nodes come and go."""

    now: Callable[[], float] = time.monotonic
    _first: float | None = None
    _last: float = 0.0

    def restart(self) -> None:
        self._last = self.now()
        if self._first is None:
            self._first = self._last

    def remaining(self) -> float:
        """Seconds until the work is due; zero resets the wait."""
        if self._first is None:
            return 0.0
        left = min(self._last + QUIET_SECONDS, self._first + LONGEST_WAIT_SECONDS) - self.now()
        if left <= 0:
            self._first = None
        return max(left, 0.0)


@dataclass(slots=True)
class Delays:
    """State between passes."""

    debounce: Debounce = field(default_factory=Debounce)
    wanted: Mapping[str, str] = field(default_factory=dict)
    """Most recently computed delays by the names of Nodes."""

    def is_as_wanted(self, name: str, node: NodeMetadata) -> bool:
        return node.delay is not None and node.delay == self.wanted.get(name)


class Reconciler:
    """Args:
    least: seconds.
    most: seconds.
    """

    def __init__(self, *, client: Client, nodes: Store[NodeMetadata], state: Delays, least: float, most: float) -> None:
        self._client = client
        self._nodes = nodes
        self._state = state
        self._least = least
        self._most = most

    async def reconcile(self, _: Key) -> Result:
        if (remaining := self._state.debounce.remaining()) > 0:
            return RequeueAfter(remaining)
        serial = await self._serial_configurations()
        names = [name.name for name, node in self._nodes.items() if node.agent_secret not in serial]
        self._state.wanted = delays(names, least=self._least, most=self._most)
        await self._write({name.name: node for name, node in self._nodes.items()})
        return Done()

    async def _serial_configurations(self) -> frozenset[str]:
        """Return configurations whose Nodes are updated one by one, without delays of ours."""
        if not any(node.agent_secret for _, node in self._nodes.items()):
            return frozenset()
        try:
            secrets = await self._client.list(SECRETS, _CONFIGURATIONS, form=Form.METADATA)
        except Forbidden as error:
            log.info("Nodes with sequential updates are unknown; all Nodes get a delay", error=str(error))
            return frozenset()
        return frozenset(key(secret).name for secret in secrets if is_truthy(annotations(secret).get(keys.OSC_SERIAL)))

    # --- writing

    async def _write(self, known: Mapping[str, NodeMetadata]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)
        problems: list[str] = []

        async def write(name: str, delay: str) -> None:
            async with limit:
                try:
                    await self._write_one(name, delay)
                except KubeError as error:
                    problems.append(f"{name}: {error}")

        async with asyncio.TaskGroup() as tasks:
            for name, delay in self._state.wanted.items():
                if known[name].delay != delay:
                    tasks.create_task(write(name, delay))
        if problems:
            shown = "; ".join(sorted(problems)[:3])
            raise ReconcileError(f"{len(problems)} Nodes did not get their delay: {shown}")

    async def _write_one(self, name: str, delay: str) -> None:
        version = self._nodes.version(Key("", name))
        for attempt in range(_ATTEMPTS):
            patch = {"metadata": {"resourceVersion": str(version), "annotations": {RECONCILIATION_DELAY: delay}}}
            try:
                self._nodes.observe(await self._client.patch(NODES, name, patch))
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            try:
                # Kubelets write their Nodes all the time.
                version = resource_version(await self._client.get(NODES, name, form=Form.METADATA))
            except NotFound:
                return


# --- the controller


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.node_agent_reconciliation_delay, context.target
    loop = ControlLoop("node-agent-reconciliation-delay")
    state = Delays()
    nodes = loop.watch(target.caches, NODES_VIEW, partial(_node_changed, state))
    return loop.reconciled_by(
        Reconciler(client=target.client, nodes=nodes, state=state, least=settings.min_delay, most=settings.max_delay)
    )


def _node_changed(state: Delays, queue: Queue, change: Change[NodeMetadata]) -> None:
    old, new = change.old, change.new
    if old == new:
        return
    stays = old is not None and new is not None and old.agent_secret == new.agent_secret
    if stays and new is not None and state.is_as_wanted(change.key.name, new):
        return  # written by ourselves
    state.debounce.restart()
    queue.add_after(ALL_NODES, QUIET_SECONDS, CHANGE)
