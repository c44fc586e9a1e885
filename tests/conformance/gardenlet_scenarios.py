"""Recorded scenarios of a gardenlet: what was done in a garden and a seed, and what the original's controllers made of it.

As in `scenario_data`, with placeholders (`garden_placeholders`; `$SEED` is the Seed), and with these further steps:

    {wait: ref, for: part of the object | {$not: part} | 'absent' | 'present'}
    {start: merge patch of the configuration}, {stop: true}, {exited: seconds}      a gardenlet of the scenario's own
    {cut: cluster}, {heal: cluster}                                       that cluster can't be reached by it any more
    {http_is: code}                                                       waits for what its `/healthz` answers
    {kubeconfig: name, token | cn, o, sans, seconds}     makes one for the garden, which objects have as `x-kubeconfig`
    {approve: common name, type}                                          the newest request for a certificate of that name
    {bind: ref of a Shoot, to: Seed}

A ref without prefix is in the garden, `seed:` and `shoot:` name the other clusters, of which the last one plays all
Shoots; `in` does so for what a step puts. What is observed is a ref, {events: ref},
{list: [kind, namespace, selector], where: part of the objects},
{csrs: common name}, {process: true}, {http: path, server}, {mr: namespace/name}, which is the content of a
ManagedResource, or {logged: [text]}, which is not compared. Types of conditions that are in `hide` are left out.

A scenario that is `alone` changes what others see (`seed`: what starting gardenlets see in the seed; `shoot`: what is in
all Shoots). `project: false` is one without a Project of its own. Those that were recorded with other settings have a
gardenlet of their own, or share another one (`config`).
"""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import yaml

from conformance.scenario_data import Scenario
from kube.objects import Object

_DIRECTORY = Path(__file__).parent
SHARED_SEED = "conf"
"""Of the gardenlet that all scenarios share which have none of their own."""
OTHER_SEED = "other"
"""Of the one that those share which were recorded with the settings `alt`."""
OTHER_SETTINGS: Object = {
    "controllers": {
        "shootCare": {
            "staleExtensionHealthChecks": {"enabled": False},
            "managedResourceProgressingThreshold": "1h",
            "webhookRemediatorEnabled": True,
            "conditionThresholds": [
                {"type": each, "duration": "12s"}
                for each in ("APIServerAvailable", "ControlPlaneHealthy", "SystemComponentsHealthy", "EveryNodeReady")
            ],
        },
    },
    "monitoring": {"shoot": {"enabled": False}},
}


class GardenletScenario(Scenario, frozen=True):
    config: str = ""
    own: bool = False
    alone: Any = False
    project: bool = True
    namespace: bool = True
    hide: tuple[str, ...] = ()


def load() -> dict[str, GardenletScenario]:
    """By their ids."""
    lines = gzip.decompress((_DIRECTORY / "gardenlet_scenarios.jsonl.gz").read_bytes()).splitlines()
    return {each.id: each for each in (msgspec.json.decode(line, type=GardenletScenario) for line in lines)}


def prelude() -> dict[str, list[Object]]:
    """What scenarios expect to be there, by the cluster."""
    found: dict[str, list[Object]] = msgspec.json.decode(
        gzip.decompress((_DIRECTORY / "gardenlet" / "prelude.json.gz").read_bytes())
    )
    return found


def configuration() -> Object:
    found: Object = yaml.safe_load((_DIRECTORY / "gardenlet" / "config.yaml").read_text())
    return found
