"""Saving of a Shoot's state in the garden, in as many objects as necessary."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog

from agent.gardenlet.common.shoot_states.rules import contents
from agent.gardenlet.common.shoot_states.rules.parts import together
from components.secrets.labels import PERSISTED
from gardener.api import extensions
from gardener.api.garden import SHOOT_STATES
from gardener.api.kinds import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from gardener.garden.shoot_states import names_of_parts
from gardener.garden.shoots import workers
from gardener.keys import CONFIRM_DELETION, TIMESTAMP
from kube.clock import format_time
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, key, metadata, spec, text, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError
from process.clusters import Cluster

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
_REFERRED = {each.kind: each for each in (CONFIG_MAPS, SECRETS)}


@dataclass(frozen=True, slots=True)
class Saved:
    """Saved state of a Shoot in the garden.

    Attributes:
        parts: ShootStates, in their order; empty if nothing was saved.
    """

    parts: tuple[Object, ...] = ()

    @property
    def specs(self) -> list[Object]:
        return [spec(each) for each in self.parts]

    @property
    def whole(self) -> Object:
        """`spec` of the whole state."""
        return together(self.specs)

    @property
    def time(self) -> str:
        """Time of the last complete save; empty if never."""
        return annotations(self.parts[0]).get(TIMESTAMP, "") if self.parts else ""


async def living(seed: Cluster, shoot: Object, before: Saved) -> Object:
    """Return the `spec` of a ShootState for the live objects in the seed.

    An object that an extension refers to, but that does not exist, is kept as it was saved before.
    """
    namespace = text(at(shoot, "status", "technicalID"))
    in_namespace, discovery = Selection(namespace=namespace), seed.discovery
    secrets = await seed.client.list(SECRETS, Selection(namespace=namespace, label_selector=PERSISTED))
    found = [each for kind in extensions.OF_SHOOTS for each in await discovery.list_if_served(kind, in_namespace)]
    backup = await discovery.find_if_served(
        extensions.BACKUP_ENTRIES, f"{namespace}--{text(at(shoot, 'status', 'uid'))}"
    )
    found += [] if backup is None else [backup]
    data = {}
    for extension in found:
        for _, reference in contents.references(extension):
            kind, name = text(reference.get("kind")), text(reference.get("name"))
            obj = await _referred(seed.client, reference, namespace)
            entry = contents.referenced(obj) if obj is not None else contents.saved_object(before.whole, kind, name)
            if obj is None:
                log.warning(
                    f"{kind} {namespace}/{name}, to which {extension['kind']} {key(extension)} refers, does not exist,"
                    " or is of a kind that is not saved; repair the extension",
                    shoot=str(key(shoot)),
                    is_saved_before=entry is not None,
                )
            if entry is not None:
                data[f"{kind}/{name}"] = entry
    machines = None
    if workers(spec(shoot)):
        kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES)
        machines = contents.machines(*[await discovery.list_if_served(each, in_namespace) for each in kinds])
    return contents.state(secrets=secrets, extensions=found, data=data, machines=machines)


async def _referred(seed: Client, reference: Object, namespace: str) -> Object | None:
    kind = _REFERRED.get(text(reference.get("kind")))
    return None if kind is None else await seed.find(kind, Key(namespace, text(reference.get("name"))))


def demand_all_keys(shoot: Key, before: Saved, found: Object, *, namespace: str) -> None:
    """Check that all saved keys still exist: if they are lost, the saved ones are the only copy.

    `found` is the `spec` of live objects, and `namespace` their namespace.

    Raises:
        ReconcileError: keys are lost.
    """
    if lost := contents.lost_secrets(before.whole, found):
        raise ReconcileError(
            f"ShootState {shoot} has keys missing in namespace {namespace}: {', '.join(lost)}; the state is not saved, "
            "to keep them; restore these Secrets from the ShootState"
        )


def demand_any_key(shoot: Key, before: Saved, found: Object, *, namespace: str) -> None:
    """Check that keys exist: a recreated cluster has none, and the saved ones are the only copy.

    Arguments as for `demand_all_keys`. Single keys may be gone together with their users.

    Raises:
        ReconcileError: all keys are lost.
    """
    if contents.has_keys(before.whole) and not contents.has_keys(found):
        raise ReconcileError(
            f"ShootState {shoot} has keys, but namespace {namespace} has none; the state is not saved, to keep them; "
            "restore the Shoot from the ShootState"
        )


# --- in the garden


async def saved(garden: Client, shoot: Key) -> Saved:
    """Read the saved state."""
    found = list[Object]()
    for name in names_of_parts(shoot.name):
        if (each := await garden.find(SHOOT_STATES, Key(shoot.namespace, name))) is None:
            break
        found.append(each)
    return Saved(tuple(found))


async def save(garden: Client, shoot: Key, wanted: Sequence[Object], before: Saved, *, now: datetime) -> None:
    """Save the parts in an order in which nothing is missing at any time, see `rules.parts`; the time is written last.

    `wanted` has the `spec` of each part.
    """
    names, parts = names_of_parts(shoot.name), list(before.parts)
    time = {TIMESTAMP: format_time(now)}
    for name, each in list(zip(names, wanted, strict=False))[len(parts) :]:
        meta = {"namespace": shoot.namespace, "name": name, "annotations": time if len(wanted) == 1 else {}}
        parts.append(await garden.create(SHOOT_STATES, {**SHOOT_STATES.type_meta, "metadata": meta, "spec": each}))
    for number, (live, each) in reversed(list(enumerate(zip(parts, wanted, strict=False)))):
        notes = {**annotations(live), **(time if number == 0 else {})}
        if spec(live) != each or annotations(live) != notes:
            changed = {**live, "metadata": {**metadata(live), "annotations": notes}, "spec": each}
            await garden.replace(SHOOT_STATES, changed)
    for live in reversed(parts[len(wanted) :]):
        await _delete(garden, live)


async def forget(garden: Client, shoot: Key) -> None:
    """Delete the saved state."""
    for each in reversed((await saved(garden, shoot)).parts):
        await _delete(garden, each)


async def _delete(garden: Client, live: Object) -> None:
    with suppress(NotFound):
        await garden.annotate(SHOOT_STATES, key(live), {CONFIRM_DELETION: "true"}, uid=uid(live))
        await garden.delete(SHOOT_STATES, key(live), uid=uid(live))
