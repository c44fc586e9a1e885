"""Output of the demo: progress on stderr, results on stdout.

On a terminal, a running step is one line that its outcome replaces, and there are colours unless NO_COLOR is set.
Elsewhere a line appears when a step is done, and nothing else.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kube.visible_text import LINES, printable

_GREEN, _RED, _BOLD = "32", "31", "1"
_CLEAR_LINE = "\r\033[K"
_GAP = "   "


@dataclass(slots=True)
class Step:
    """Outcome of a step, shown at its end; initially the text at its start."""

    outcome: str


class Screen:
    def __init__(self) -> None:
        self._redraws = sys.stderr.isatty()

    @contextmanager
    def step(self, title: str, *, timed: bool = True) -> Iterator[Step]:
        """Show the start of a step, its outcome and, if `timed`, its duration; errors are passed on."""
        step = Step(title)
        start = time.monotonic()
        self._draw(f"… {printable(title)}")
        try:
            yield step
        except Exception:
            self._finish(_colored("✘", _RED, sys.stderr.isatty()), title, start if timed else None)
            raise
        except BaseException:
            self._draw("")
            raise
        self._finish(_colored("✔", _GREEN, sys.stderr.isatty()), step.outcome, start if timed else None)

    def progress(self, text: str) -> None:
        """Show the progress of the running step."""
        self._draw(f"… {printable(text)}")

    def heading(self, text: str) -> None:
        print(f"\n{_colored(printable(text), _BOLD, sys.stdout.isatty())}", flush=True)

    def show(self, text: str) -> None:
        print(printable(text, keep=LINES), flush=True)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Show rows of cells, the first of which is the header."""
        shown = [[printable(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for row in shown:
            self.show(_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def _draw(self, line: str) -> None:
        if self._redraws:
            # A wrapped line would not be replaced as a whole.
            shown = line[: shutil.get_terminal_size().columns - 1]
            print(f"{_CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)

    def _finish(self, mark: str, text: str, start: float | None) -> None:
        self._draw("")
        took = f" ({time.monotonic() - start:.1f} s)" if start is not None else ""
        print(f"{mark} {printable(text)}{took}", file=sys.stderr, flush=True)


def _colored(text: str, color: str, terminal: bool) -> str:
    return f"\033[{color}m{text}\033[0m" if terminal and not os.environ.get("NO_COLOR") else text
