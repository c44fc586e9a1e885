"""Recorded scenarios of a garden: what was done in it, and what the original's controllers made of that.

As in `scenario_data`, with placeholders (`garden_placeholders`) and these further steps:

    {wait: ref, for: part of the object | {$not: part} | 'absent' | 'present', bound: seconds}
    {csr: name, cn, o, usages, as, groups, signer}      make a certificate request, and send it as a user
    {approve: name, condition}
    {bind: ref, seed}                                   move a Shoot to another Seed

What is observed is a ref, {events: ref}, or {list: [apiVersion, kind, namespace, selector], where: part}. Of most kinds only
metadata and status are compared; `fields` of a step tells which fields beside the metadata are, with `!metadata` as the
first one instead of it. An `x-owner` becomes an owner reference.

A scenario has a Project of its own, unless `project` is false. `config` names the configuration of the controller
manager: with `short`, Projects are stale at once, and Events live for seconds.
"""

import gzip
from pathlib import Path

import msgspec

from conformance.scenario_data import Scenario

_FILE = Path(__file__).parent / "garden_scenarios.jsonl.gz"


class GardenScenario(Scenario, frozen=True):
    project: bool = True
    config: str = "main"


def load(config: str) -> dict[str, GardenScenario]:
    """By their ids."""
    lines = gzip.decompress(_FILE.read_bytes()).splitlines()
    scenarios = (msgspec.json.decode(line, type=GardenScenario) for line in lines)
    return {scenario.id: scenario for scenario in scenarios if scenario.config == config}
