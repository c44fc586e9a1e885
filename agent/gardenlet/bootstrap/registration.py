"""Registration of the Seed in the garden: as configured, at each start; and the namespace of the Seed."""

from dataclasses import dataclass, field

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rules.registration import (
    MARKER,
    MARKER_NAMESPACE,
    new_seed,
    seed_patch,
    stays_away,
    why_again,
)
from gardener.api.garden import SEEDS
from gardener.garden.seeds import namespace_of
from kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from kube.objects import Key, Object, metadata
from kube.resources import CONFIG_MAPS, NAMESPACES
from kube.runtime.client import Client
from process.runner import StartError

_LOOK_SECONDS = 10.0
_CHANGED_SECONDS = 0.1
_NAMESPACE_LOOKS, _NAMESPACE_SECONDS = 10, 0.5

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Registration of the Seed.

    Attributes:
        configured: the Seed, with `metadata` and `spec`.
    """

    garden: Client
    seed: Client
    configured: Object
    pace: Pace = field(default_factory=Pace)

    @property
    def name(self) -> str:
        name: str = metadata(self.configured)["name"]
        return name

    async def register(self) -> Object:
        """Return the Seed; wait while it is finalised by this gardenlet, until it is wanted again.

        Raises:
            StartError: the garden refuses it, or creates no namespace for it.
        """
        try:
            is_reported = False
            while (registered := await self.pace.patiently("register the Seed", self._registered)) is None:
                if not is_reported:
                    self._report_absence()
                is_reported = True
                await self.pace.sleep(_LOOK_SECONDS)
        except ApiError as error:
            raise StartError(f'could not register seed "{self.name}": {error}') from error
        await self._namespace()
        return registered

    def _report_absence(self) -> None:
        log.info(
            "The Seed was deleted; it is not registered again until its configuration changes or the marker is removed",
            seed=self.name,
            marker=f"ConfigMap {MARKER_NAMESPACE}/{MARKER} of the seed cluster",
        )

    async def _registered(self) -> Object | None:
        while True:
            try:
                live = await self.garden.find(SEEDS, self.name)
                written = await (self._created() if live is None else self._patched(live))
            except (AlreadyExists, Conflict, NotFound):
                await self.pace.sleep(_CHANGED_SECONDS)
                continue  # created, changed or deleted meanwhile
            if written is not None:
                await self._remove_marker()
            return written

    async def _created(self) -> Object | None:
        marker = await self._marker()
        if stays_away(marker, self.configured):
            return None
        log.info("Registering the Seed", seed=self.name, reason=why_again(marker))
        return await self.garden.create(SEEDS, new_seed(self.configured))

    async def _patched(self, live: Object) -> Object:
        patch = seed_patch(live, self.configured)
        if not patch:
            return live
        version = metadata(live)["resourceVersion"]
        body = {**patch, "metadata": {**metadata(patch), "resourceVersion": version}}
        written = await self.garden.patch(SEEDS, self.name, body)
        log.info("Updated the Seed to the configuration", seed=self.name)
        return written

    async def _marker(self) -> Object | None:
        return await self.seed.find(CONFIG_MAPS, Key(MARKER_NAMESPACE, MARKER))

    async def _remove_marker(self) -> None:
        """Delete the marker of a Seed that no longer exists."""
        if await self._marker() is not None:
            await self.seed.delete_if_exists(CONFIG_MAPS, Key(MARKER_NAMESPACE, MARKER))

    async def _namespace(self) -> None:
        """Wait for the namespace of the Seed, which the controller manager creates.

        Raises:
            StartError: the namespace is missing.
        """
        name, missing = namespace_of(self.name), ""
        for _ in range(_NAMESPACE_LOOKS):
            try:
                await self.pace.patiently("read the namespace of the Seed", self._look_at_namespace)
            except (NotFound, Forbidden) as error:
                missing = str(error)
            else:
                return
            await self.pace.sleep(_NAMESPACE_SECONDS)
        remedy = "check whether the controller manager of the garden runs"
        raise StartError(f'namespace "{name}" of the garden: context deadline exceeded: {missing}; {remedy}')

    async def _look_at_namespace(self) -> Object:
        return await self.garden.get(NAMESPACES, namespace_of(self.name))
