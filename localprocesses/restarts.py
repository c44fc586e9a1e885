"""Pauses between restarts of a process: increasing ones, and none for a process that has run for a while."""

from dataclasses import dataclass

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_LASTS_SECONDS = 60.0


@dataclass(slots=True)
class Attempts:
    """Attempts to run one process. Times are seconds of a monotonic clock."""

    count: int = 0
    """Attempts since the process last ran for a while."""
    pause: float = 0.0
    started: float = float("-inf")
    error: str = ""
    """Last error of the previous process, until the current one is ready."""

    def left(self, now: float) -> float:
        """Return the seconds until the next attempt; not positive if it may begin."""
        if now - self.started > _LASTS_SECONDS + self.pause:
            self.count, self.pause = 0, 0.0
        return self.started + self.pause - now

    def begin(self, now: float) -> None:
        self.count += 1
        self.started = now
        self.pause = min(max(self.pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
