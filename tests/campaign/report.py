"""What came of a run: text for people, and JSON with everything."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from campaign.oracles import Level, Problem
from campaign.plan import Plan
from campaign.replicas import Exit
from campaign.strikes import Injected

_MIB = 2**20


@dataclass(slots=True)
class Violation:
    problem: Problem
    when: str
    """In which part of the run it was found."""
    writes: list[str]
    """Writes to the object, as the audit log reports."""


@dataclass(slots=True)
class Report:
    plan: Plan
    load: float
    """Of the machine, for each of its cores."""
    injected: list[Injected] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    admissions: int = 0
    excused: int = 0
    """Admissions that failed at first, when nothing could be done."""
    rest_seconds: float = 0.0
    writes: int = 0
    moved: int = 0
    """Objects that were handed over to another agent."""
    tries: dict[str, int] = field(default_factory=dict)
    """How often users had to try again."""
    before: dict[str, Level] = field(default_factory=dict)
    after: dict[str, Level] = field(default_factory=dict)
    exits: dict[str, list[Exit]] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds that the parts of the run took."""

    @property
    def is_good(self) -> bool:
        return not self.violations

    def text(self) -> str:
        return "\n".join([*self._head(), *self._faults(), *self._levels(), *self._findings()])

    def _head(self) -> list[str]:
        exits = ", ".join(f"{name} {len(found)}" for name, found in self.exits.items() if found)
        parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.parts.items())
        lines = (
            f"seed {self.plan.seed}: {len(self.plan.steps)} steps of users, {len(self.injected)} faults injected"
            f" in {self.plan.seconds:.0f} s (load {self.load:.1f} a core)\n"
            f"settled {self.parts.get('settle', 0):.0f} s after the last fault; {self.writes} writes by agents and webhooks;"
            f" watched in steady state for {self.rest_seconds:.0f} s\n"
            f"objects handed over between two agents: {self.moved}\n"
            f"admissions: {self.admissions}, of which {self.excused} failed at first for a reason\n"
            f"processes that ended: {exits or 'none'}\n"
            f"parts: {parts}"
        )
        return lines.splitlines()

    def _faults(self) -> list[str]:
        counts = Counter(each.strike.fault for each in self.injected)
        return ["faults:", *(f"  {count:4d} {fault}" for fault, count in sorted(counts.items()))]

    def _levels(self) -> list[str]:
        return [
            f"{name}: {self.before[name].resident / _MIB:.0f} -> {level.resident / _MIB:.0f} MiB,"
            f" {self.before[name].files} -> {level.files} open files"
            for name, level in self.after.items()
            if name in self.before
        ]

    def _findings(self) -> list[str]:
        if self.is_good:
            return ["no violations"]
        lines = [f"{len(self.violations)} violations:"]
        for violation in self.violations:
            lines.append(f"- {violation.when}: {violation.problem}")
            lines += [f"    {line}" for line in violation.writes]
        lines.append("what struck before:")
        lines += [
            f"  {each.begin:6.1f}-{each.healed:6.1f} {each.strike.lane}: {each.strike} {each.note}"
            for each in self.injected
        ]
        return lines

    def json(self) -> str:
        return json.dumps({"good": self.is_good, **asdict(self)}, indent=1, default=_plain)


def _plain(value: Any) -> str:
    return str(value)
