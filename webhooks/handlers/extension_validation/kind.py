"""Parts of the rules of all kinds, and the webhook of a kind made of its rules.

All errors of an object are reported at once, in the order in which the original checks it: an update is compared with
the old object, then the new object is checked as if it were created.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from config.resource_manager import webhooks as schema
from kube import resources as kubernetes
from kube.objects import Object
from kube.validation import FieldError, forbidden, invalid, invalid_status, required
from webhooks.admission import Errored, Failure, Refusal, Request
from webhooks.descriptor import Entry, HandlerWebhook
from webhooks.generic import validator
from webhooks.handlers.extension_validation.rules import metadata
from webhooks.handlers.extension_validation.rules.difference import differences
from webhooks.handlers.extension_validation.rules.metadata import IMMUTABLE, Resource
from webhooks.handlers.extension_validation.rules.typed import as_json, decode, value_at
from webhooks.rules.registration import WRITE, Rule

_MOST_ERRORS = 200


def need(path: str, value: object) -> Sequence[FieldError]:
    return () if value else (required(path, "field is required"),)


def immutable(path: str, new: Any, old: Any) -> Sequence[FieldError]:
    # Unset and empty values are equal.
    return () if new == old or not (new or old) else (invalid(path, as_json(new), IMMUTABLE),)


def frozen_spec(kind: "Kind", new: Any, old: Any) -> FieldError | None:
    """Return the error in an update of an object that is being deleted, if any."""
    found = differences(new.spec, old.spec)
    if not found:
        return None
    sentence = f"cannot update {kind.noun} spec if deletion timestamp is set. Requested changes: "
    return forbidden("spec", sentence + ",".join(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    typed: type[Resource]
    resource: kubernetes.Resource
    noun: str
    required: tuple[str, ...] = ()
    """Paths of required fields; checked before `errors`."""
    errors: Callable[[Any], Iterable[FieldError]] = lambda _: ()
    """Further rules for the object as it is."""
    immutable: tuple[str, ...] = ()
    """Paths of the fields that an update must not change; checked after `changes`."""
    changes: Callable[[Any, Any], Iterable[FieldError]] = lambda _new, _old: ()
    """Further rules for an update."""
    frozen: Callable[["Kind", Any, Any], FieldError | None] = frozen_spec

    @property
    def name(self) -> str:
        return self.resource.kind

    def webhook(self) -> HandlerWebhook[schema.Webhook]:
        group, version = self.resource.group, self.resource.version
        return HandlerWebhook(
            name="extension-validation",
            path=f"/validate-{group.replace('.', '-')}-{version}-{self.name.lower()}",
            settings=schema.Webhook,
            handler=lambda _settings, _state: validator(self.create, self.update, self.delete),
            validating=True,
            entries=(
                Entry(
                    name=f"validation.extensions.{self.resource.plural}",
                    rules=(Rule(WRITE, group, (version,), (self.resource.plural,)),),
                ),
            ),
        )

    def create(self, _request: Request, obj: Object) -> None:
        """Check a new object.

        Raises:
            Refusal: it is invalid, or cannot be decoded.
        """
        new = self._decode(obj)
        self._refuse(new, self._object_errors(new))

    def update(self, _request: Request, obj: Object, old_object: Object) -> None:
        """Check a changed object.

        Raises:
            Refusal: it is invalid, or cannot be decoded.
        """
        new, old = self._decode(obj), self._decode(old_object)
        self._refuse(new, self._update_errors(new, old))

    def delete(self, _request: Request, old_object: Object) -> None:
        """Check that a deleted object can be decoded.

        Raises:
            Refusal: it cannot be decoded.
        """
        self._decode(old_object)

    def _decode(self, obj: Any) -> Any:
        decoded = decode(self.typed, obj, kind=self.name)
        expected = (self.resource.api_version, self.name)
        # An object without apiVersion and kind is assumed to have the expected ones.
        if (decoded.api_version or expected[0], decoded.kind or expected[1]) != expected:
            message = f"unable to decode {decoded.api_version}, Kind={decoded.kind} into {self.name}"
            raise Refusal(Errored(400, message))
        return decoded

    def _object_errors(self, new: Any) -> Iterator[FieldError]:
        yield from metadata.object_errors(new.metadata, namespaced=self.resource.namespaced)
        for path in self.required:
            yield from need(path, value_at(new, path))
        yield from self.errors(new)

    def _update_errors(self, new: Any, old: Any) -> Iterator[FieldError]:
        yield from metadata.update_errors(new.metadata, old.metadata)
        error = self.frozen(self, new, old) if new.metadata.deletion_timestamp is not None else None
        if error is not None:
            yield error
        else:
            yield from self.changes(new, old)
            for path in self.immutable:
                yield from immutable(path, value_at(new, path), value_at(old, path))
        yield from self._object_errors(new)

    def _refuse(self, new: Any, errors: Iterator[FieldError]) -> None:
        try:
            # An object may have as many mistakes as a request has room for; fixing these reveals the next.
            found = list(islice(errors, _MOST_ERRORS))
        except RecursionError:
            raise Refusal(Errored(400, f"unable to check {self.name}: nested too deeply")) from None
        if found:
            status = invalid_status(group=self.resource.group, kind=self.name, name=new.metadata.name, errors=found)
            raise Refusal(Failure(status))
