"""Faults that an object asks for in `providerConfig.simulate`.

    simulate: {delay: 2s, errorText: quota exceeded, errorCode: ERR_INFRA_QUOTA_EXCEEDED, times: 2, stuck: true}

`times: 2` is two failures, then success; without it, an error lasts. What is stuck never answers.
"""

from dataclasses import dataclass

from kube.clock import parse_duration
from kube.objects import Object, integer, mapping, spec, text
from kube.paths import mapping_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Args:
    delay: seconds before anything is done.
    error: text of the error; empty: none.
    code: of the error.
    times: how often it fails; None: always.
    is_stuck: whether it never answers.
    """

    delay: float = 0.0
    error: str = ""
    code: str = ""
    times: int | None = None
    is_stuck: bool = False

    def fails(self, failures: int) -> bool:
        """Args: failures: how often it has failed already."""
        return bool(self.error) and (self.times is None or failures < self.times)


def simulation_of(obj: Object) -> Simulation:
    """Raises ValueError: the delay is no duration; the text says so."""
    asked = mapping_at(mapping(spec(obj).get("providerConfig")), "simulate")
    code = text(asked.get("errorCode"))
    times = asked.get("times")
    return Simulation(
        delay=parse_duration(text(asked["delay"])) if asked.get("delay") else 0.0,
        error=text(asked.get("errorText")) or (f"simulated {code}" if code else ""),
        code=code,
        times=None if times is None else integer(times),
        is_stuck=asked.get("stuck") is True,
    )
