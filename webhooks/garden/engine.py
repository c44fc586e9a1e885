"""Answer admission requests by the descriptor of a kind: one decode, one pass, all findings at once.

Rules read from caches; the only calls are SubjectAccessReviews, counts, and reads of named objects whose content is
checked. Requests before the caches are filled are refused. Caches lag: an object that a rule `need`s and that is
missing in them is read, and the request is evaluated again.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from config.webhooks import schema
from kube.errors import KubeError, Unreachable
from kube.objects import Object, mapping, metadata, text
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Handler, Request, User
from webhooks.descriptor import Entry, HandlerWebhook
from webhooks.garden.access import Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import MOST_FINDINGS, Denial, Finding, status
from webhooks.garden.common.write import Content, GardenLister, Limit, Right, Write
from webhooks.garden.lookups import Lookups, Missed, Seen
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
    """Return the mutating webhook, if there is anything to change, and the validating one."""
    validating = _webhook(kind, "validate", kind.validated, status=bool(kind.status_checks))
    if not kind.is_mutating:
        return (validating,)
    return (_webhook(kind, "mutate", WRITE, status=bool(kind.status_mutations)), validating)


def _webhook(kind: Kind, what: str, operations: tuple[str, ...], *, status: bool) -> HandlerWebhook[schema.Garden]:
    group, version, plural = kind.resource.group, kind.resource.version, kind.resource.plural
    name = kind.name or plural
    rules = [Rule(operations, group, (version,), (plural,))]
    if status:
        rules.append(Rule(("UPDATE",), group, (version,), (f"{plural}/status",)))

    def handler(settings: schema.Garden, state: SharedListers) -> Handler:
        lookups, access = Lookups(state, kind.reads), Access(state.target.client)
        if what == "mutate":
            return mutator(kind, lookups, access)
        return limited(validator(kind, lookups, access), kind.resource, settings)

    return HandlerWebhook(
        name=NAME,
        path=f"/webhooks/garden/{name}/{what}",
        settings=schema.Garden,
        handler=handler,
        validating=what == "validate",
        entries=(
            Entry(
                name=f"{name}.{NAME}",
                rules=tuple(rules),
                namespaces=kind.namespaces,
                objects=kind.objects,
                match_policy="Equivalent",
                condition=kind.condition,
            ),
        ),
    )


def mutator(kind: Kind, lookups: Lookups, access: Access) -> Handler:
    shapes = _Shapes.of(kind)

    def changed(request: Request, seen: Seen) -> Answer:
        try:
            obj, old = shapes.objects_of(request)
        except WrongShape:
            # The API server validates it by its schema next, and reports the error.
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
        try:
            return await _confirmed(access, request, lookups, partial(changed, request))
        except KubeError as error:
            return _unanswered(error)

    return handle


class _Evaluation(NamedTuple):
    """Results of the rules for a request."""

    user: User
    found: list[Finding]
    rights: list[Right]
    limits: list[Limit]
    contents: list[Content]
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
            contents=list(kind.contents_of(write)),
            warnings=tuple(kind.warnings_about(write)),
        )

    async def handle(request: Request) -> Answer:
        if (request.old_object if request.operation == "DELETE" else request.object) is None:
            return Errored(400, NOTHING_TO_DECODE)
        if not lookups.ready:
            return Denied(NOT_READY)
        try:
            result = await _confirmed(access, request, lookups, partial(evaluated, request))
            found = await _with_rights(result, access) if result.rights else result.found
            if result.limits:
                found = [*found, *await _full(result.limits, access)]
            if result.contents and not found:
                found = await access.wrong(result.user, result.contents)
        except WrongShape as error:
            return Errored(400, str(error))
        except Exception as error:  # noqa: BLE001 - every error is answered
            return _unanswered(error)
        if found:
            obj = request.old_object if request.operation == "DELETE" else request.object
            return Failure(status(kind.resource, _name(request, mapping(obj)), found), result.warnings)
        return Allowed(warnings=result.warnings)

    return handle


async def _confirmed(access: Access, request: Request, lookups: Lookups, evaluate: Callable[[Seen], T]) -> T:
    """Return the result of an evaluation in which objects are missing only if the API server confirms it."""
    requested = set[Missed]()
    while True:
        seen = lookups.of_request()
        result = await offloaded(partial(evaluate, seen))
        new = seen.missed - requested
        if not new or not await access.finds(request.user, lookups, new):
            return result
        requested |= new


def _unanswered(error: Exception) -> Answer:
    if isinstance(error, Unreachable):
        # Not a refusal: nothing was decided, and the client may retry.
        return Errored(503, f"cannot get rights, counts and objects from the API server: {error}")
    return answer_to(error)


async def _with_rights(evaluation: _Evaluation, access: Access) -> list[Finding]:
    missing = await access.missing(evaluation.user, evaluation.rights)
    hidden = {right.path for right in missing if right.path}
    return [*(finding for finding in evaluation.found if finding.path not in hidden), *map(_denial, missing)]


async def _full(limits: list[Limit], access: Access) -> list[Denial]:
    return [Denial(limit.denial, limit.path) for limit in limits if await access.is_full(limit)]


def _denial(right: Right) -> Denial:
    return Denial(right.denial, right.path)


def _to_change(obj: Object) -> Object:
    """Copy an object, sharing managedFields: they are long, and no mutation changes them."""
    meta = metadata(obj)
    managed = meta.get("managedFields")
    after: Object = copied(obj if managed is None else {**obj, "metadata": {**meta, "managedFields": None}})
    if managed is not None:
        after["metadata"]["managedFields"] = managed
    return after


def _write(request: Request, new: Object, old: Object, garden: GardenLister) -> Write:
    return Write(
        operation=request.operation,
        # The deletion of a collection sends each object, without naming it.
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
    """Shapes of the objects of a kind."""

    bounded: Shape
    of_any_size: Shape

    @classmethod
    def of(cls, kind: Kind) -> Self:
        return cls(shape_of(kind.definition), shape_of(kind.definition, bounded=False))

    def objects_of(self, request: Request) -> tuple[Object, Object]:
        """Return the object to check, and the one that it replaces.

        Raises:
            WrongShape: the object does not fit its kind.
        """
        new, old = request.object, request.old_object
        if request.operation == "DELETE":
            return _stored(self.of_any_size, old), {}
        try:
            self.bounded.check(new)
        except WrongShape:
            # Stored under a more permissive schema: its metadata may change, so that it can be deleted.
            if request.operation != "UPDATE" or _content(new) != _content(old):
                raise
            self.of_any_size.check(new)
            return new, old
        return new, _stored(self.bounded, old)


def _content(obj: Any) -> Object:
    return {name: value for name, value in mapping(obj).items() if name not in {"metadata", "status"}}


def _stored(shape: Shape, old: Object | None) -> Object:
    """Return the stored object; empty if its shape would be refused now, so that all of it counts as changed."""
    if old is None:
        return {}
    try:
        shape.check(old)
    except WrongShape:
        return {"metadata": metadata(mapping(old))}
    return old
