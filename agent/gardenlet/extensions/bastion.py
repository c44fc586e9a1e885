"""The controller `bastion`: Bastions for Shoots of the own Seed, mirrored as extension objects.

Bastions           of the own Seed: new ones, spec changes and deletions
extension objects  of the same name in the namespace of the Shoot: responses of the extension

The extension creates a host, on which a script authorizes the SSH key of the Bastion. The address of the host is
copied into the status of the Bastion.
"""

import base64
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.common.extension_objects.kinds import BASTION
from agent.gardenlet.common.extension_objects.mirroring import MirroredObjects, answers, awaited, manifest
from agent.gardenlet.common.extension_objects.questions import Question
from agent.gardenlet.context import Context
from gardener.api.extensions import BASTIONS as EXTENSION_BASTIONS
from gardener.api.garden import BASTIONS, SHOOTS
from gardener.extension_contract import Pending, Trouble, has_succeeded, standing_of
from gardener.keys import CONFIRM_FORCE_DELETION, GARDENER_FINALIZER
from kube.addresses import canonical_cidr
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError, NotFound
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    integer,
    is_deleting,
    is_truthy,
    key,
    metadata,
    spec,
    text,
    uid,
)
from kube.paths import at, mappings_at
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.loop import ControlLoop, always, enqueue_mapped, enqueue_own
from kube.runtime.predicates import any_of, changed, listed
from kube.runtime.status import StatusWriter

READY = "BastionReady"
_BY_NAME = "name"
_GOES_SECONDS = 5.0
_SUCCEEDED = Condition(READY, "True", "SuccessfullyReconciled", "The bastion has been reconciled successfully.")
_DELETING = Condition(READY, "False", "DeletionInProgress", "The bastion is being deleted.")
_EXTENSION_BASTIONS_VIEW = View(EXTENSION_BASTIONS, without_managed_fields)
_SCRIPT = """\
#!/bin/bash -eu
id gardener || useradd gardener --create-home --shell /bin/bash
mkdir -p /home/gardener/.ssh
echo {key} > /home/gardener/.ssh/authorized_keys
chown -R gardener:gardener /home/gardener/.ssh
chmod 700 /home/gardener/.ssh
chmod 600 /home/gardener/.ssh/authorized_keys
echo 'gardener ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/99-gardener-user
systemctl start ssh || systemctl start sshd
"""


def user_data(public_key: str) -> str:
    """Script for the first start of the host, in base64: it creates a user with this key and full sudo rights."""
    return base64.b64encode(_SCRIPT.format(key=shlex.quote(public_key.strip())).encode()).decode()


def desired(bastion: Object, live: Object | None = None) -> Object:
    """Spec of the extension object.

    An existing one keeps its script, perhaps of another release: the field is immutable, and only used for a new host.
    """
    cidrs = [canonical_cidr(text(at(each, "ipBlock", "cidr"))) for each in mappings_at(bastion, "spec", "ingress")]
    return {
        "type": text(spec(bastion).get("providerType")),
        "userData": text(spec(live or {}).get("userData")) or user_data(text(spec(bastion).get("sshPublicKey"))),
        "ingress": [{"ipBlock": {"cidr": cidr}} for cidr in cidrs],
    }


def declare(context: Context) -> ControlLoop:
    settings, garden, seed = context.config.controllers.bastion, context.garden, context.seed
    own = View(
        BASTIONS,
        without_managed_fields,
        field_selector=f"spec.seedName={context.seed_name}",
        indexes=((_BY_NAME, _name_of),),
    )
    loop = ControlLoop("bastion", kind=BASTIONS, workers=settings.concurrent_syncs)
    extensions = MirroredObjects(seed, clock=context.clock)
    is_asked = any_of(listed, changed("metadata.generation", is_deleting, _is_forced))
    bastions = loop.watch(garden.caches, own, enqueue_own(always, when=is_asked, forget=extensions.forget))
    places: dict[Key, Key] = {}

    def answered(change: Change[Object]) -> list[Key]:
        same_name = bastions.keys_by_index(_BY_NAME, change.key.name)
        found = [name for name in same_name if places.get(name, change.key) == change.key]
        has_gone = change.new is None
        return [name for name in found if not has_gone or is_deleting(bastions.get(name) or {})]

    def follow() -> None:
        loop.watch(
            seed.caches,
            _EXTENSION_BASTIONS_VIEW,
            enqueue_mapped(answered, when=any_of(answers, lambda change: change.new is None)),
        )

    loop.when_served(seed.discovery, [EXTENSION_BASTIONS], follow)
    return loop.reconciled_by(
        Reconciler(
            garden=garden.client,
            seed=seed.client,
            extensions=extensions,
            bastions=bastions,
            places=places,
            statuses=StatusWriter(garden.client, bastions),
            clock=context.clock,
        )
    )


def _name_of(bastion: Object) -> tuple[str]:
    return (key(bastion).name,)


def _is_forced(bastion: Object) -> bool:
    return is_truthy(annotations(bastion).get(CONFIRM_FORCE_DELETION))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    garden: Client
    seed: Client
    extensions: MirroredObjects
    bastions: Store[Object]
    places: dict[Key, Key]
    """Name of the extension object of each Bastion; other Shoots may have one of the same name."""
    statuses: StatusWriter
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        bastion = self.bastions.get(name)
        if bastion is None:
            self.extensions.forget(name)
            return Done()
        return await (self._delete(bastion) if is_deleting(bastion) else self._reconcile(bastion))

    async def _reconcile(self, bastion: Object) -> Result:
        name, shoot = key(bastion), await self._shoot_of(bastion)
        if shoot is None:
            raise ReconcileError(f"could not get shoot {_shoot_name(bastion)}")
        bastion = await ensure_finalizer(self.garden, BASTIONS, bastion, GARDENER_FINALIZER)
        self.bastions.observe(bastion)
        place = self.places[name] = Key(_namespace_of(shoot), name.name)
        extension = await self.seed.find(EXTENSION_BASTIONS, place)
        question = Question(kind=BASTION, manifest=manifest(place, desired(bastion, extension)))
        if extension is not None and is_deleting(extension):
            return RequeueAfter(_GOES_SECONDS)  # recreated by the next pass
        standing = standing_of(extension) if extension is not None else Pending("it does not exist yet")
        if isinstance(standing, Trouble):
            await self._fail(bastion, f"Error while waiting for Bastion {place} to become ready: {standing.reason}")
        if extension is None or question.is_open(extension):
            return await self._ask(bastion, question, extension)
        if not has_succeeded(extension):
            return awaited(BASTION)
        self.extensions.forget(name)
        await self._succeed(bastion, extension)
        return Done()

    async def _ask(self, bastion: Object, question: Question, extension: Object | None) -> Result:
        try:
            return await self.extensions.request(key(bastion), question, extension)
        except KubeError as error:
            await self._fail(bastion, str(error))
            raise

    async def _succeed(self, bastion: Object, extension: Object) -> None:
        generation = integer(metadata(bastion).get("generation"))
        address = at(extension, "status", "ingress")
        await self._write(bastion, _SUCCEEDED, ingress=address, observedGeneration=generation)

    async def _fail(self, bastion: Object, message: str) -> None:
        await self._write(bastion, Condition(READY, "False", "FailedReconciling", message))

    async def _delete(self, bastion: Object) -> Result:
        if GARDENER_FINALIZER not in finalizers(bastion):
            return Done()
        bastion = await self._write(bastion, _DELETING)
        shoot = await self._shoot_of(bastion)
        place = Key(_namespace_of(shoot), key(bastion).name) if shoot is not None else None
        extension = await self.seed.find(EXTENSION_BASTIONS, place) if place is not None else None
        if place is not None and extension is not None:
            if _is_forced(bastion) and not _is_forced(extension):
                forced = {CONFIRM_FORCE_DELETION: "true"}
                await self.seed.annotate(EXTENSION_BASTIONS, place, forced, uid=uid(extension))
            if not is_deleting(extension):
                await self.seed.delete_if_exists(EXTENSION_BASTIONS, place, uid=uid(extension))
            if await self.seed.find(EXTENSION_BASTIONS, place) is not None:
                return RequeueAfter(_GOES_SECONDS)
        await remove_finalizer(self.garden, BASTIONS, self.bastions.get(key(bastion)) or bastion, GARDENER_FINALIZER)
        self.places.pop(key(bastion), None)
        return Done()

    async def _shoot_of(self, bastion: Object) -> Object | None:
        name = _shoot_name(bastion)
        try:
            return await self.garden.get(SHOOTS, name)
        except NotFound:
            return None
        except KubeError as error:
            raise ReconcileError(f"could not get shoot {name}: {error}") from error

    async def _write(self, bastion: Object, condition: Condition, **fields: object) -> Object:
        conditions = with_conditions(conditions_of(bastion), [condition], now=self.clock())
        written = await self.statuses.write(bastion, {"conditions": conditions, **fields})
        self.bastions.observe(written)
        return written


def _shoot_name(bastion: Object) -> Key:
    return Key(key(bastion).namespace, text(at(bastion, "spec", "shootRef", "name")))


def _namespace_of(shoot: Object) -> str:
    """Return the namespace of the Shoot in the seed.

    Raises:
        ReconcileError: it has none yet.
    """
    if namespace := text(at(shoot, "status", "technicalID")):
        return namespace
    raise ReconcileError(f"shoot {key(shoot)} has no technical ID yet")
