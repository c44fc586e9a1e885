"""Figures of the original, measured once with the same load; see the introduction of the report."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    seconds: str = ""
    cpu: str = ""
    calls: str = ""
    memory: str = ""

    def __str__(self) -> str:
        named = (("calls", self.calls), ("s", self.seconds), ("s CPU", self.cpu), ("MiB", self.memory))
        return ", ".join(f"{value} {unit}" for unit, value in named if value)


RECONCILING: dict[tuple[int, int], dict[str, Figures]] = {
    (100, 10): {
        "create": Figures(seconds="6.1", cpu="1.87", calls="1674", memory="96"),
        "change": Figures(seconds="6.0", cpu="2.11", calls="1524", memory="100 (peak 120)"),
        "rest": Figures(cpu="1.0 a minute", calls="369 a minute", memory="102"),
        "drift": Figures(seconds="median 22.8, max 25.2", cpu="0.78", calls="310", memory="102"),
        "delete": Figures(seconds="35.6", cpu="4.43", calls="6612", memory="92"),
    },
    (500, 10): {
        "create": Figures(seconds="39.8", cpu="9.89", calls="8460", memory="146"),
        "change": Figures(seconds="67.8", cpu="18.65", calls="8862", memory="176 (peak 215)"),
        "rest": Figures(cpu="6.7 a minute", calls="3300 a minute", memory="172 (peak 215)"),
    },
}
START = Figures(seconds="0.10-0.17", memory="62")
