"""Errors that an actuator raises; any other error fails the operation, and is reported with its text."""

from kube.runtime.controller import ReconcileError


class Pending(ReconcileError):
    """The operation has to wait: its method is called again, and no worker is occupied meanwhile.

    The reason becomes the description of `status.lastOperation`.

    Attributes:
        seconds: until the next call; None: until the object changes.
        longest: seconds since the start of the operation after which this is an error; None: no limit.
    """

    def __init__(self, reason: str, *, seconds: float | None, longest: float | None = None) -> None:
        super().__init__(reason)
        self.seconds, self.longest = seconds, longest


class CodedError(ReconcileError):
    """The operation failed for a reason that Gardener has codes for, see `gardener.error_codes`."""

    def __init__(self, description: str, *codes: str) -> None:
        super().__init__(description)
        self.codes = codes
