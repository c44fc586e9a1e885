"""States and conditions as words in colour."""

from gardener.overview.states import State
from kubectl.style import BLUE, DIM, GREEN, RED, YELLOW, Word

_STATES = {
    State.READY: GREEN,
    State.PROGRESSING: BLUE,
    State.UNHEALTHY: RED,
    State.FAILED: RED,
    State.SUSPENDED: YELLOW,
    State.DELETING: YELLOW,
    State.PENDING: DIM,
}


def state_word(state: State) -> Word:
    return Word(state.value, _STATES[state])


def status_word(status: str, *, good: str) -> Word:
    """The status of a condition."""
    if not status:
        return Word("-", DIM)
    return Word(status, GREEN if status == good else RED if status in {"True", "False"} else YELLOW)
