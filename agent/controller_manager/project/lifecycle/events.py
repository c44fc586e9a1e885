"""Events about Projects."""

from collections.abc import Iterable

from kube.objects import Key, Object, key
from kube.repeats import Repeats
from kube.runtime.events import EventRecorder, EventType

REPORTER = "project-controller"

RECONCILED = "NamespaceReconcileSuccessful"
RECONCILE_FAILED = "NamespaceReconcileFailed"
NOT_EMPTY = "NamespaceNotEmpty"
MARKED_FOR_DELETION = "NamespaceMarkedForDeletion"
DELETION_FAILED = "NamespaceDeletionFailed"


class Events:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._warned: Repeats[tuple[str, str]] = Repeats()

    def tell(self, project: Object, reason: str, message: str) -> None:
        self._write(project, "Normal", reason, message)

    def warn(self, project: Object, reason: str, messages: Iterable[str]) -> None:
        """Warn of what the pass before has not warned of."""
        for new in sorted(self._warned.news(key(project), ((reason, message) for message in messages))):
            self._write(project, "Warning", *new)

    def forget(self, own: Key) -> None:
        """The Project is as it is to be, or gone."""
        self._warned.forget(own)

    def _write(self, project: Object, type_: EventType, reason: str, message: str) -> None:
        self._recorder.event(project, type_, reason, message, reporter=REPORTER)
