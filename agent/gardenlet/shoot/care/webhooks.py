"""The webhook configurations of a Shoot: listed page by page, and corrected if the remediator is enabled.

Before the first correction of a configuration, an Event announces the changes, if the API server accepts them in a dry
run; the next listing makes the correction.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from agent.gardenlet.shoot.care.rules.observed import WebhookFinding
from agent.gardenlet.shoot.care.rules.remediation import Reversals, corrected, is_remediated, lines_of, sentence
from agent.gardenlet.shoot.care.rules.webhooks import is_checked, problem_of
from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Object, key
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.events import EventRecorder
from kube.write_mode import CARRIED_OUT, WriteMode

PAGE = 100
"""Objects in a page of a list."""
_DRY_RUN = WriteMode(dry_run=True)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, slots=True, kw_only=True)
class Webhooks:
    """Args: remediates: whether they are corrected."""

    remediates: bool
    recorder: EventRecorder
    clock: Callable[[], datetime]
    _reversals: dict[str, dict[tuple[str, str], Reversals]] = field(default_factory=dict)
    """Keys: namespace; then kind and name of the configuration."""

    async def findings(self, client: Client, namespace: str, shoot: Object) -> AsyncIterator[WebhookFinding]:
        """Check all webhook configurations of a Shoot, and correct them if enabled. Args: namespace: in the seed.

        Raises:
            KubeError: the Shoot's API server failed.
        """
        known = self._reversals.setdefault(namespace, {})
        seen = set()
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            async for page in client.pages(kind, Selection(), limit=PAGE, managed_fields=self.remediates):
                for each in filter(is_checked, page):
                    name = (kind.kind, key(each).name)
                    seen.add(name)
                    if self.remediates:
                        yield await self._remediated(client, kind, each, shoot, known.setdefault(name, Reversals()))
                    else:
                        yield _finding(kind, each)
        for gone in known.keys() - seen:
            del known[gone]

    def forget(self, namespace: str) -> None:
        self._reversals.pop(namespace, None)

    async def _remediated(
        self, client: Client, kind: Resource, found: Object, shoot: Object, reversals: Reversals
    ) -> WebhookFinding:
        now = self.clock()
        if reversals.is_paused(now):
            return _finding(kind, found, note=reversals.text())
        if (wanted := corrected(found)) is None:
            return _finding(kind, found)
        what, lines = f'{kind.kind} "{key(found).name}" of the Shoot', lines_of(wanted)
        if not reversals.are_announced(lines):
            if is_accepted := await _written(client, kind, wanted, shoot, mode=_DRY_RUN) is not None:
                reversals.announced = lines
                message = f"{what} will be corrected: {sentence(lines)}"
                self.recorder.event(shoot, "Warning", "WebhookRemediationAnnounced", message)
            return _finding(kind, found, is_announced=is_accepted)
        if reversals.may_correct(found, lines, own=_manager(client), now=now):
            return _finding(kind, await _written(client, kind, wanted, shoot) or found)
        message = f"{what} is not corrected any more: {reversals.text()}"
        self.recorder.event(shoot, "Warning", "WebhookRemediationReverted", message)
        return _finding(kind, found, note=reversals.text())


def _finding(kind: Resource, found: Object, *, note: str = "", is_announced: bool = False) -> WebhookFinding:
    return WebhookFinding(
        kind=kind.kind,
        name=key(found).name,
        problem=problem_of(found),
        is_remediated=is_remediated(found),
        note=note,
        is_announced=is_announced,
    )


async def _written(
    client: Client, kind: Resource, wanted: Object, shoot: Object, *, mode: WriteMode = CARRIED_OUT
) -> Object | None:
    """Return the written object; None if it was changed meanwhile, or the API server rejects it."""
    try:
        return await client.replace(kind, wanted, mode=mode)
    except (Conflict, NotFound):
        return None
    except KubeError as error:
        log.warning("Cannot correct a webhook", shoot=str(key(shoot)), name=key(wanted).name, error=error)
        return None


def _manager(client: Client) -> str:
    """Field manager under which the API server records writes of this process."""
    return client.identity["User-Agent"].partition("/")[0]
