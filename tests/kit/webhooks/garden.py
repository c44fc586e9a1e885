"""Requests to the webhooks of the garden API, through the real engine, without a cluster.

What the API server does between the webhooks is done as offline: defaults of the schema, and its findings.

    asked = Asked(PROJECT, user="ann", garden=[other_project])
    assert asked.create({"metadata": {"name": "p"}, "spec": {}}).object["spec"]["owner"]["name"] == "ann"
    assert asked.create(bad).fields == {"metadata.name"}
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gardener.api.structural import errors, with_defaults
from kit.webhooks.mutating import state_of
from kit.webhooks.requests import request_about
from kube.objects import Key, Object, key, key_of, metadata
from kube.paths import at
from kube.resources import Resource
from kube.runtime.client import Selection
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Request, User
from webhooks.garden.access import Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import status
from webhooks.garden.engine import mutator, validator
from webhooks.garden.lookups import Lookups
from webhooks.generic import copied


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request."""

    object: Object
    """As it would be stored; as sent, if it was refused."""
    status: Object | None
    """None: accepted."""
    warnings: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        return 200 if self.status is None else int(self.status["code"])

    @property
    def message(self) -> str:
        return "" if self.status is None else str(self.status["message"])

    @property
    def fields(self) -> set[str]:
        """Of the causes of a refusal; without the one that reports that rules of CEL were left out."""
        causes = ((self.status or {}).get("details") or {}).get("causes") or []
        return {cause["field"] for cause in causes} - {"<nil>"}

    @property
    def spec(self) -> Object:
        return cast("Object", self.object["spec"])


@dataclass
class Reviews:
    """An API server that answers SubjectAccessReviews: everything is allowed but these verbs, `<verb> <resource>[/<subresource>]`."""

    denied: Sequence[str] = ()
    requested: list[Object] = field(default_factory=list)
    """Their resource attributes."""
    stored: Sequence[Object] = ()
    """What can be counted and read."""

    async def create(self, _resource: object, review: Object) -> Object:
        attributes = review["spec"]["resourceAttributes"]
        self.requested.append(attributes)
        subresource = f"/{attributes['subresource']}" if attributes.get("subresource") else ""
        action = f"{attributes['verb']} {attributes['resource']}{subresource}"
        return {"status": {"allowed": action not in self.denied}}

    async def find(self, resource: Resource, name: Key | str) -> Object | None:
        found = (each for each in self.stored if each["kind"] == resource.kind and key(each) == key_of(name))
        return next(found, None)

    async def pages(
        self, resource: Resource, selection: Selection, **_options: object
    ) -> AsyncIterator[Sequence[Object]]:
        parts = re.split(r"(?<!\\),", selection.field_selector)
        terms = [re.split("(!?)=", part, maxsplit=1) for part in parts if part]

        def selected(obj: Object) -> bool:
            return all(
                (at(obj, *path.split(".")) == re.sub(r"\\(.)", r"\1", value)) == (not no) for path, no, value in terms
            )

        yield [obj for obj in self.stored if obj["kind"] == resource.kind and selected(obj)]

    async def list(self, resource: Resource, selection: Selection, **_options: object) -> Sequence[Object]:
        return [
            obj
            async for page in self.pages(resource, selection)
            for obj in page
            if key(obj).namespace == selection.namespace
        ]


class Asked:
    """A kind, who writes objects of it, and what else there is.

    Args:
        garden: the other objects, each with apiVersion and kind.
        denied: see `Reviews`.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        user: str = "admin",
        groups: Sequence[str] = (),
        garden: Sequence[Object] = (),
        denied: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.user = User(user, tuple(groups))
        self.reviews = Reviews(denied, stored=garden)
        state = state_of(*garden, client=self.reviews)
        lookups, access = Lookups(state, kind.reads), Access(cast("Any", self.reviews))
        self._mutator = mutator(kind, lookups, access)
        self._validator = validator(kind, lookups, access)

    def mutate(self, request: Request) -> Answer:
        """By the mutating webhook alone."""
        return asyncio.run(cast("Any", self._mutator(request)))  # type: ignore[no-any-return]

    def validate(self, request: Request) -> Answer:
        """By the validating webhook alone."""
        return asyncio.run(cast("Any", self._validator(request)))  # type: ignore[no-any-return]

    def create(self, obj: Object) -> Outcome:
        return self._write("CREATE", obj, None)

    def update(self, old: Object, new: Object) -> Outcome:
        return self._write("UPDATE", new, old)

    def update_status(self, old: Object, new: Object) -> Outcome:
        return self._write("UPDATE", new, old, subresource="status")

    def delete(self, old: Object, **options: Any) -> Outcome:
        """Args: options: of DeleteOptions."""
        old = self.complete(old)
        return _outcome(self.validate(self.request("DELETE", None, old, options=options)), old)

    def _write(self, operation: str, obj: Object, old: Object | None, *, subresource: str = "") -> Outcome:
        obj = self.complete(obj)
        old = None if old is None else self.complete(old)
        schema = self.kind.definition.schema
        obj = with_defaults(schema, obj)
        answer = self.mutate(self.request(operation, obj, old, subresource))
        if not isinstance(answer, Changed | Allowed):
            return _outcome(answer, obj)
        after = with_defaults(schema, answer.after if isinstance(answer, Changed) else obj)
        if wrong := errors(schema, after, old=old):
            resource = self.kind.resource
            return Outcome(after, status(resource, after["metadata"]["name"], wrong), answer.warnings)
        validated = self.validate(self.request(operation, copied(after), old, subresource))
        outcome = _outcome(validated, after)
        return Outcome(outcome.object, outcome.status, (*answer.warnings, *outcome.warnings))

    def complete(self, obj: Object) -> Object:
        """With apiVersion and kind, a name and, where the kind has one, a namespace."""
        resource = self.kind.resource
        meta = {"name": "x", **({"namespace": "garden-dev"} if resource.namespaced else {}), **metadata(obj)}
        complete = {**resource.type_meta, **obj, "metadata": meta}
        return cast("Object", copied(complete))

    def request(
        self,
        operation: str,
        obj: Object | None,
        old: Object | None = None,
        subresource: str = "",
        options: Mapping[str, str] | None = None,
    ) -> Request:
        resource = self.kind.resource
        meta = metadata(obj or old or {})
        return request_about(
            resource,
            obj,
            old,
            operation=operation,
            name=meta["name"],
            namespace=meta.get("namespace", ""),
            options=options,
            subresource=subresource,
            user=self.user,
        )


def _outcome(answer: Answer, obj: Object) -> Outcome:
    match answer:
        case Allowed():
            return Outcome(obj, None, answer.warnings)
        case Failure():
            return Outcome(obj, answer.status, answer.warnings)
        case Denied():
            return Outcome(obj, {"code": 403, "message": answer.message})
        case Errored():
            return Outcome(obj, {"code": answer.code, "message": answer.message})
        case Changed():
            raise AssertionError("a validating webhook changed something")
