"""States and conditions as words in colour."""

from gardener.overview.states import ResourceState
from kubectl.style import BLUE, DIM, GREEN, RED, YELLOW, Word

_STATES = {
    ResourceState.READY: GREEN,
    ResourceState.PROGRESSING: BLUE,
    ResourceState.UNHEALTHY: RED,
    ResourceState.FAILED: RED,
    ResourceState.SUSPENDED: YELLOW,
    ResourceState.DELETING: YELLOW,
    ResourceState.PENDING: DIM,
}


def state_word(state: ResourceState) -> Word:
    return Word(state.value, _STATES[state])


def status_word(status: str, *, good: str) -> Word:
    """The status of a condition."""
    if not status:
        return Word("-", DIM)
    return Word(status, GREEN if status == good else RED if status in {"True", "False"} else YELLOW)
