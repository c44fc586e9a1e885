"""The Gardenlet that upgrades this process: created once from a ConfigMap in the seed cluster, which is then deleted.

One that exists in the garden is left unchanged.
"""

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from gardener.api.garden import GARDENLETS
from kube.errors import ApiError, Conflict
from kube.objects import Key, Object, mapping, metadata, string_map, text, uid
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from kube.yaml import Budget, DialectError, load
from process.runner import StartError

NAMESPACE, NAME, KEY = "garden", "gardenlet-selfupgrade-config", "gardenlet.yaml"
_MOST_VALUES = 100_000
_WHERE = f"ConfigMap {NAMESPACE}/{NAME}"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def hand_over(*, garden: Client, seed: Client, pace: Pace) -> None:
    """Create the Gardenlet.

    Raises:
        StartError: it can't be decoded, or the garden refuses it; the ConfigMap stays.
    """
    found = await pace.patiently(f"read the {_WHERE}", lambda: seed.find(CONFIG_MAPS, Key(NAMESPACE, NAME)))
    if found is None:
        return
    try:
        gardenlet = decoded(string_map(found.get("data")).get(KEY, ""))
    except ValueError as error:
        kind = f"{GARDENLETS.api_version}.{GARDENLETS.kind}"
        raise StartError(f"error decoding {kind} object from {_WHERE}: {error}") from error
    try:
        await pace.patiently("create the Gardenlet of this process", lambda: _make(garden, gardenlet))
    except ApiError as error:
        raise StartError(f"could not create the {GARDENLETS.kind} of the {_WHERE}: {error}") from error
    await pace.patiently(f"remove the {_WHERE}", lambda: _remove(seed, found))


def decoded(content: str) -> Object:
    """Decode the Gardenlet, with unknown fields.

    Raises:
        ValueError: it is invalid.
    """
    try:
        found = mapping(load(content, budget=Budget(_MOST_VALUES)))
    except DialectError as error:
        raise ValueError(str(error)) from error
    if (found.get("apiVersion"), found.get("kind")) != (GARDENLETS.api_version, GARDENLETS.kind):
        raise ValueError(f"it is not a {GARDENLETS.kind} of {GARDENLETS.api_version}")
    if not text(metadata(found).get("name")):
        raise ValueError("it has no name")
    meta = {"namespace": NAMESPACE, **metadata(found)}
    return {**found, "metadata": meta}


async def _make(garden: Client, gardenlet: Object) -> None:
    meta = metadata(gardenlet)
    if await garden.find(GARDENLETS, Key(meta["namespace"], meta["name"])) is not None:
        return
    if await garden.create_if_missing(GARDENLETS, gardenlet):
        log.info("Created the Gardenlet that upgrades this process", name=f"{meta['namespace']}/{meta['name']}")


async def _remove(seed: Client, found: Object) -> None:
    version = metadata(found)["resourceVersion"]
    try:
        await seed.delete_if_exists(CONFIG_MAPS, Key(NAMESPACE, NAME), uid=uid(found), resource_version=version)
    except Conflict:
        log.warning(f"The {_WHERE} was changed meanwhile; it is read again at the next start")
