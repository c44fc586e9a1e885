"""Handlers made of a rule: `defaulter` from one that changes an object, `validator` from ones that accept or refuse it.

A rule raises `Refusal` for expected problems. Errors of communication with an API server become answers, too; see
`answer_to`. Any other error is a bug in the rule itself, and is raised: `webhooks.review` answers and counts it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from kube.errors import ApiError, KubeError
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Handler, Mutation, Refusal, Request
from webhooks.offload import offloaded
from webhooks.rules.shapes import Shape

NOTHING_TO_DECODE = "there is no content to decode"

Check = Callable[[Request, Object], None]
"""Check a new object. Errors are those of a `Mutation`."""

Comparison = Callable[[Request, Object, Object], None]
"""Check a new object and the one that it replaces. Errors are those of a `Mutation`."""


def copied(obj: Any) -> Any:
    """Return an independent copy of plain JSON; this is the fastest way, ten times as fast as `copy.deepcopy`."""
    return msgspec.to_builtins(obj)


def in_place(shape: Shape, change: Callable[[Object], None]) -> Callable[[Any, Any], Mutation]:
    """Return the mutation of a rule that needs only the object: neither settings nor the cluster."""

    def mutation(_settings: Any, _state: Any) -> Mutation:
        async def mutate(_: Request, obj: Object) -> None:
            shape.demand(obj)
            change(obj)

        return mutate

    return mutation


def defaulter(mutation: Mutation) -> Handler:
    """Return the handler that applies a mutation to the object of a request; the mutation checks kind and types."""

    async def handle(request: Request) -> Answer:
        if request.operation == "DELETE":
            return Allowed()
        if request.object is None:
            return Errored(400, NOTHING_TO_DECODE)
        after = await offloaded(partial(copied, request.object))
        try:
            await mutation(request, after)
        except Exception as error:  # noqa: BLE001 - every error is answered
            return answer_to(error)
        return Changed(request.object, after)

    return handle


def validator(create: Check, update: Comparison, delete: Check | None = None) -> Handler:
    """Return the handler that calls `create` or `update`, which check kind and types, too.

    Args:
        create: checks a new object.
        update: checks a changed object.
        delete: checks only whether the old object can be decoded; deletions are allowed.
    """

    async def handle(request: Request) -> Answer:
        try:
            match request.operation:
                case "CREATE":
                    await offloaded(partial(create, request, _present(request.object)))
                case "UPDATE":
                    new, old = _present(request.object), _present(request.old_object)
                    await offloaded(partial(update, request, new, old))
                case "DELETE":
                    old_object = _present(request.old_object)
                    if delete is not None:
                        await offloaded(partial(delete, request, old_object))
                case "CONNECT":
                    pass
                case unknown:
                    return Errored(400, f'unknown operation "{unknown}"')
        except Exception as error:  # noqa: BLE001 - every error is answered
            return answer_to(error)
        return Allowed()

    return handle


def _present(obj: Any) -> Any:
    if obj is None:
        raise Refusal(Errored(400, NOTHING_TO_DECODE))
    return obj


def answer_to(error: Exception) -> Answer:
    """Return the answer to the API server when a rule raises. A bug in the rule is raised again."""
    for cause in _causes(error):
        if isinstance(cause, Refusal):
            return cause.answer
        if isinstance(cause, ApiError):
            return Failure(status_of(cause))
    if isinstance(error, KubeError):
        return Denied(str(error))
    raise error


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def status_of(error: ApiError) -> Object:
    status: Object = {"status": "Failure", "message": str(error)}
    if error.reason:
        status["reason"] = error.reason
    if error.details:
        status["details"] = dict(error.details)
    return status | {"code": error.status}
