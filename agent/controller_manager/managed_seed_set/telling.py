"""Events of passes over one object: what the pass before has told is not told again."""

from kube.events import EventRecorder, EventType
from kube.objects import Key, Object, key

_REPORTER = "managedseedset-controller"


class Teller:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._before: set[tuple[Key, str, str, int]] = set()
        self._now: set[tuple[Key, str, str, int]] = set()

    def begin(self) -> None:
        """A pass begins."""
        self._before, self._now = self._now, set()

    def suspend(self) -> None:
        """The pass ended before it had looked at all: the next one goes on with what is known."""
        self._now |= self._before

    def tell(self, obj: Object, type_: EventType, reason: str, message: str, *, number: int = 0) -> None:
        """Args: number: tells apart what is the same otherwise and happens more than once."""
        event = (key(obj), reason, message, number)
        if event not in self._before | self._now:
            self._recorder.event(obj, type_, reason, message, reporter=_REPORTER)
        self._now.add(event)
