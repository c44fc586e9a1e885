"""From an admission request to its answer, by the descriptor of a kind: one decode, one pass, all findings at once.

Rules answer from caches; the only calls are SubjectAccessReviews, and counts. Requests that come before the caches are
filled are refused. Caches lag behind: where a rule `need`s an object that is not there yet, the request waits for it a
moment and is evaluated again, so that a file with an object and what it refers to can be applied in one go.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from config.webhooks import schema
from kube.errors import Unreachable
from kube.objects import Object, mapping, metadata, text
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Handler, Request, User
from webhooks.descriptor import Entry, HandlerWebhook
from webhooks.garden.access import Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import MOST_FINDINGS, Denial, Finding, status
from webhooks.garden.common.write import GardenLister, Limit, Right, Write
from webhooks.garden.lookups import Lookups, Seen
from webhooks.garden.shapes import shape_of
from webhooks.garden.sizes import limited
from webhooks.generic import NOTHING_TO_DECODE, answer_to, copied
from webhooks.offload import offloaded
from webhooks.rules.registration import WRITE, Rule
from webhooks.rules.shapes import Shape, WrongShape
from webhooks.state import SharedListers

T = TypeVar("T")

NAME = "garden"
NOT_READY = "not yet ready to handle request"


def webhooks_of(kind: Kind) -> tuple[HandlerWebhook[schema.Garden], ...]:
    """The mutating one, if there is anything to change, and the validating one."""
    validating = _webhook(kind, "validate", kind.validated, status=bool(kind.status_checks))
    if not kind.is_mutating:
        return (validating,)
    return (_webhook(kind, "mutate", WRITE, status=bool(kind.status_mutations)), validating)


def _webhook(kind: Kind, what: str, operations: tuple[str, ...], *, status: bool) -> HandlerWebhook[schema.Garden]:
    group, version, plural = kind.resource.group, kind.resource.version, kind.resource.plural
    rules = [Rule(operations, group, (version,), (plural,))]
    if status:
        rules.append(Rule(("UPDATE",), group, (version,), (f"{plural}/status",)))

    def handler(settings: schema.Garden, state: SharedListers) -> Handler:
        lookups = Lookups(state, kind.reads)
        if what == "mutate":
            return mutator(kind, lookups)
        return limited(validator(kind, lookups, Access(state.target.client)), kind.resource, settings)

    return HandlerWebhook(
        name=NAME,
        path=f"/webhooks/garden/{plural}/{what}",
        settings=schema.Garden,
        handler=handler,
        validating=what == "validate",
        entries=(Entry(name=f"{plural}.{NAME}", rules=tuple(rules), objects=kind.objects, match_policy="Equivalent"),),
    )


def mutator(kind: Kind, lookups: Lookups) -> Handler:
    shapes = _Shapes.of(kind)

    def changed(request: Request, seen: Seen) -> Answer:
        try:
            obj, old = shapes.objects_of(request)
        except WrongShape:
            # The API server compares it with its schema next, and says what is wrong.
            return Allowed()
        after = _to_change(obj)
        write = _write(request, after, old, seen)
        warnings = tuple(kind.deprecations_in(write))
        kind.mutate(write)
        return Changed(request.object, after, warnings)

    async def handle(request: Request) -> Answer:
        if request.object is None:
            return Errored(400, NOTHING_TO_DECODE)
        if not lookups.ready:
            return Denied(NOT_READY)
        return await _again_if_missed(lookups, lambda seen: changed(request, seen), lambda _: True)

    return handle


class _Evaluation(NamedTuple):
    """What the rules say about a request."""

    user: User
    found: list[Finding]
    rights: list[Right]
    limits: list[Limit]
    warnings: tuple[str, ...]


def validator(kind: Kind, lookups: Lookups, access: Access) -> Handler:
    shapes = _Shapes.of(kind)

    def evaluated(request: Request, seen: Seen) -> _Evaluation:
        write = _write(request, *shapes.objects_of(request), seen)
        return _Evaluation(
            user=write.user,
            found=list(islice(kind.findings(write), MOST_FINDINGS)),
            rights=list(kind.rights_for(write)),
            limits=list(kind.limits_of(write)),
            warnings=tuple(kind.warnings_about(write)),
        )

    async def handle(request: Request) -> Answer:
        if (request.old_object if request.operation == "DELETE" else request.object) is None:
            return Errored(400, NOTHING_TO_DECODE)
        if not lookups.ready:
            return Denied(NOT_READY)
        try:
            result = await _again_if_missed(
                lookups, lambda seen: evaluated(request, seen), lambda result: bool(result.found)
            )
            found = await _with_rights(result, access) if result.rights else result.found
            if result.limits:
                found = [*found, *await _full(result.limits, access)]
        except WrongShape as error:
            return Errored(400, str(error))
        except Unreachable as error:
            # Not as a refusal: nothing was decided, and the client may try again.
            return Errored(503, f"cannot ask the API server about rights and numbers: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered
            return answer_to(error)
        if found:
            obj = request.old_object if request.operation == "DELETE" else request.object
            return Failure(status(kind.resource, _name(request, mapping(obj)), found), result.warnings)
        return Allowed(warnings=result.warnings)

    return handle


async def _again_if_missed(lookups: Lookups, evaluate: Callable[[Seen], T], is_refused: Callable[[T], bool]) -> T:
    seen = lookups.of_request()
    result = await offloaded(partial(evaluate, seen))
    if seen.missed and is_refused(result) and await lookups.arrival(seen.missed):
        result = await offloaded(partial(evaluate, lookups.of_request()))
    return result


async def _with_rights(evaluation: _Evaluation, access: Access) -> list[Finding]:
    missing = await access.missing(evaluation.user, evaluation.rights)
    hidden = {right.path for right in missing if right.path}
    return [*(finding for finding in evaluation.found if finding.path not in hidden), *map(_denial, missing)]


async def _full(limits: list[Limit], access: Access) -> list[Denial]:
    return [Denial(limit.denial, limit.path) for limit in limits if await access.is_full(limit)]


def _denial(right: Right) -> Denial:
    return Denial(right.denial, right.path)


def _to_change(obj: Object) -> Object:
    """A copy that shares managedFields: they are long, and no mutation touches them."""
    meta = metadata(obj)
    managed = meta.get("managedFields")
    after: Object = copied(obj if managed is None else {**obj, "metadata": {**meta, "managedFields": None}})
    if managed is not None:
        after["metadata"]["managedFields"] = managed
    return after


def _write(request: Request, new: Object, old: Object, garden: GardenLister) -> Write:
    return Write(
        operation=request.operation,
        # A deletion of a collection asks about each object, and names none.
        namespace=request.namespace or text(metadata(new).get("namespace")),
        name=_name(request, new),
        user=request.user,
        new=new,
        old=old,
        subresource=request.subresource,
        options=mapping(request.options),
        garden=garden,
    )


def _name(request: Request, obj: Object) -> str:
    return text(metadata(obj).get("name")) or request.name


class _Shapes(NamedTuple):
    """What the objects of a kind have to be."""

    bounded: Shape
    of_any_size: Shape

    @classmethod
    def of(cls, kind: Kind) -> Self:
        return cls(shape_of(kind.definition), shape_of(kind.definition, bounded=False))

    def objects_of(self, request: Request) -> tuple[Object, Object]:
        """What is looked at, and what it replaces. Raises: WrongShape."""
        new, old = request.object, request.old_object
        if request.operation == "DELETE":
            return _stored(self.of_any_size, old), {}
        try:
            self.bounded.check(new)
        except WrongShape:
            # Stored while the schema permitted more: its metadata may change, and with them it may be deleted.
            if request.operation != "UPDATE" or _content(new) != _content(old):
                raise
            self.of_any_size.check(new)
            return new, old
        return new, _stored(self.bounded, old)


def _content(obj: Any) -> Object:
    return {name: value for name, value in mapping(obj).items() if name not in {"metadata", "status"}}


def _stored(shape: Shape, old: Object | None) -> Object:
    """What was stored under another schema, and would not be accepted now, counts as empty: all of it changes."""
    if old is None:
        return {}
    try:
        shape.check(old)
    except WrongShape:
        return {"metadata": metadata(mapping(old))}
    return old
