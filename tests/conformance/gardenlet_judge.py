"""Whether garden and seed look as they are to: as the original left them, or as `gardenlet_differences` states."""

from collections.abc import Mapping
from typing import Any

from conformance.gardenlet_differences import BETTER, EITHER, OTHERWISE
from conformance.gardenlet_scenarios import GardenletScenario
from conformance.scenario_data import Observations
from conformance.scenario_normal import Judge, contains

_LIFE = "life"
_NO_MACHINES = {"data": None, "name": "machine-state", "type": "machine-state"}
"""Entry of a ShootState, which later releases leave out."""


def comparable(value: Any) -> Any:
    """Without what differs for other reasons than the gardenlet.

    What a process has printed is for people. How long certificates live that don't report so, and for whom tokens are that
    don't report so, is up to the cluster.
    """
    match value:
        case dict():
            kept = {name: comparable(inner) for name, inner in value.items() if not name.startswith("said: ")}
            if kept.get(_LIFE) in {"30d", "365d"}:
                kept[_LIFE] = "<of the cluster>"
            if isinstance(kept.get("aud"), list):
                kept["aud"] = [each for each in kept["aud"] if each != "gardener"]
            end = kept.get("clientCertificateExpirationTimestamp")
            if isinstance(end, str) and end in {"<now+30d>", "<now+365d>"}:
                kept["clientCertificateExpirationTimestamp"] = "<of the cluster>"
            return kept
        case list():
            return [comparable(each) for each in value if each != _NO_MACHINES]
        case _:
            return value


_COMPARED = Judge(compared_as=comparable)


def accepts(scenario: GardenletScenario, seen: Observations) -> bool:
    """Whether the observations so far are as they are to be in the end."""
    if scenario.id in EITHER:
        wanted = {name: each for name, each in EITHER[scenario.id][1].items() if name in seen}
        if contains(seen, wanted):
            return True
    return _COMPARED.accepts(_measure(scenario), seen)


def difference(scenario: GardenletScenario, seen: Observations) -> str:
    """Empty if there is none. Raises AssertionError: it does not differ any more as it is reported to."""
    if scenario.id in EITHER and contains(seen, EITHER[scenario.id][1]):
        return ""
    if scenario.id in BETTER or scenario.id in OTHERWISE:
        assert _COMPARED.difference(_recorded(scenario), seen), "the reason does not hold any more"
    return _COMPARED.difference(_measure(scenario), seen)


def _measure(scenario: GardenletScenario) -> GardenletScenario:
    if scenario.id in BETTER:
        reason, wanted = BETTER[scenario.id]
        return GardenletScenario(scenario.id, scenario.area, scenario.steps, peer_defect=reason, want=wanted)
    if scenario.id in OTHERWISE:
        _, values = OTHERWISE[scenario.id]
        expected = {name: _replaced(each, values) for name, each in scenario.expect.items()}
        return GardenletScenario(scenario.id, scenario.area, scenario.steps, expected)
    return scenario if scenario.want else _recorded(scenario)


def _recorded(scenario: GardenletScenario) -> GardenletScenario:
    """Also where the original behaves badly."""
    return GardenletScenario(scenario.id, scenario.area, scenario.steps, scenario.expect)


def _replaced(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {name: _replaced(inner, values) for name, inner in value.items()}
        case list():
            return [_replaced(each, values) for each in value]
        case str():
            return values.get(value, value)
        case _:
            return value
