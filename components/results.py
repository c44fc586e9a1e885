"""Results of the tasks of a flow: values that a task provides for later ones.

    Task("address", "Waiting until ...", wait_for_address, provides=ADDRESS)
    Task("advertised", "Ensuring ...", advertise, after=["address"], reads=[ADDRESS])

The graph of a flow is only valid if each reader runs after the provider. A task that reads a result without declaring
it fails, so that no order is left to chance.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kube.objects import Object

T = TypeVar("T")


@dataclass(frozen=True, eq=False)  # slots would prevent Python from storing generic type arguments on instances
class Result(Generic[T]):
    """Attributes:
    name: for errors.
    default: value if its task is skipped, or is no part of the flow.
    """

    name: str
    default: T


_declared: ContextVar[Collection[Result[Any]] | None] = ContextVar("declared", default=None)
"""Results that the current task may read; None outside of flows."""


@contextmanager
def only(results: Collection[Result[Any]]) -> Iterator[None]:
    """Restrict the results that code may read."""
    token = _declared.set(results)
    try:
        yield
    finally:
        _declared.reset(token)


class Results:
    """Results of one run of a flow."""

    def __init__(self, values: Mapping[Result[Any], Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, result: Result[T]) -> T:
        """Return the value. Raises LookupError if the current task does not declare that it reads the result."""
        declared = _declared.get()
        if declared is not None and result not in declared:
            raise LookupError(f"result {result.name!r} is read, but not declared; add it to `reads` of the task")
        value: T = self._values.get(result, result.default)
        return value

    def provide(self, result: Result[T], value: T) -> None:
        self._values[result] = value


# --- results for components of Shoots


@dataclass(frozen=True, slots=True)
class Namespace:
    """Attributes: zones: of the control plane."""

    uid: str = ""
    zones: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """Attributes: host: an IP address, or a host name; empty if unknown."""

    host: str = ""
    port: int = 443


NAMESPACE = Result("namespace", Namespace())
ADDRESS = Result("address", Address())
"""Address of the API server."""
CLUSTER_IP = Result("cluster IP", "")
"""Address of the Service of the API server."""
INFRASTRUCTURE = Result[Object]("infrastructure", {})
"""The Infrastructure, once its extension has responded."""
WORKER = Result[Object]("worker", {})
"""The Worker, likewise."""
