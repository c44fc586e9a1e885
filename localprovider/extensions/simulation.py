"""Faults that an object requests in `providerConfig.simulate`.

    simulate: {delay: 2s, errorText: quota exceeded, errorCode: ERR_INFRA_QUOTA_EXCEEDED, times: 2, stuck: true}

`times: 2` means two failures, then success; without it, an error is permanent. A stuck object never answers.
"""

from dataclasses import dataclass

from kube.clock import parse_duration
from kube.objects import Object, integer, mapping, spec, text
from kube.paths import mapping_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Requested faults.

    Attributes:
        delay: seconds before any action.
        error: text of the error; empty if there is none.
        code: code of the error.
        times: number of failures; None if it always fails.
        is_stuck: whether it never answers.
    """

    delay: float = 0.0
    error: str = ""
    code: str = ""
    times: int | None = None
    is_stuck: bool = False

    def fails(self, failures: int) -> bool:
        """Whether the next attempt fails, after this number of failures."""
        return bool(self.error) and (self.times is None or failures < self.times)


def simulation_of(obj: Object) -> Simulation:
    """Return the faults that an object requests.

    Raises:
        ValueError: the delay is not a valid duration; the text has the reason.
    """
    requested = mapping_at(mapping(spec(obj).get("providerConfig")), "simulate")
    code = text(requested.get("errorCode"))
    times = requested.get("times")
    return Simulation(
        delay=parse_duration(text(requested["delay"])) if requested.get("delay") else 0.0,
        error=text(requested.get("errorText")) or (f"simulated {code}" if code else ""),
        code=code,
        times=None if times is None else integer(times),
        is_stuck=requested.get("stuck") is True,
    )
