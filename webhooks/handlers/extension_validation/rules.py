"""What the rules of all kinds are made of, and how those of one kind become its webhook.

All that is wrong with an object is reported at once, in the order in which the original checks it: an update is
compared with the object as it was, then the new object is checked as if it were created.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from kube.objects import Object
from kube.validation import FieldError, forbidden, invalid, invalid_status, required
from webhooks.admission import Errored, Failure, Handler, Refusal, Request
from webhooks.generic import validator
from webhooks.handlers.extension_validation import metadata
from webhooks.handlers.extension_validation.difference import differences
from webhooks.handlers.extension_validation.metadata import IMMUTABLE, ObjectMeta
from webhooks.handlers.extension_validation.typed import GoName, Raw, Typed, as_json, decode

GROUP = "extensions.gardener.cloud"
VERSION = "v1alpha1"
_MOST_ERRORS = 200


class SecretReference(Typed):
    package = "v1"

    name: str = ""
    namespace: str = ""


class DefaultSpec(Typed):
    """What the specs of all extension resources begin with."""

    type: str = ""
    extension_class: Annotated[str | None, GoName(type="v1alpha1.ExtensionClass")] = msgspec.field(
        name="class", default=None
    )
    provider_config: Raw = None


class Resource(Typed):
    """The base of all kinds; each adds its `spec`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


T = TypeVar("T", bound=Resource)


def need(path: str, value: object) -> Sequence[FieldError]:
    return () if value else (required(path, "field is required"),)


def immutable(path: str, new: Any, old: Any) -> Sequence[FieldError]:
    # Nothing equals nothing, however it is written.
    return () if new == old or not (new or old) else (invalid(path, as_json(new), IMMUTABLE),)


def frozen_spec(kind: "Kind[Any]", new: Any, old: Any) -> FieldError | None:
    """What is wrong with an update of an object that is being deleted."""
    found = differences(new.spec, old.spec)
    if not found:
        return None
    sentence = f"cannot update {kind.noun} spec if deletion timestamp is set. Requested changes: "
    return forbidden("spec", sentence + ",".join(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """The rules of a kind. `errors` are those of the object as it is, `changes` those of an update."""

    typed: type[T]
    resource: str
    noun: str
    errors: Callable[[T], Iterable[FieldError]]
    changes: Callable[[T, T], Iterable[FieldError]]
    frozen: Callable[["Kind[Any]", T, T], FieldError | None] = frozen_spec
    group: str = GROUP
    namespaced: bool = True

    @property
    def name(self) -> str:
        return self.typed.__name__

    @property
    def path(self) -> str:
        return f"/validate-{self.group.replace('.', '-')}-{VERSION}-{self.name.lower()}"

    def handler(self) -> Handler:
        return validator(self.create, self.update, self.delete)

    def create(self, _request: Request, obj: Object) -> None:
        """Raises: Refusal."""
        new = self._decode(obj)
        self._refuse(new, self._object_errors(new))

    def update(self, _request: Request, obj: Object, old_object: Object) -> None:
        """Raises: Refusal."""
        new, old = self._decode(obj), self._decode(old_object)
        self._refuse(new, self._update_errors(new, old))

    def delete(self, _request: Request, old_object: Object) -> None:
        """Raises: Refusal."""
        self._decode(old_object)

    def _decode(self, obj: Any) -> T:
        decoded = decode(self.typed, obj, kind=self.name)
        expected = (f"{self.group}/{VERSION}", self.name)
        # Without apiVersion and kind an object is taken for what it should be.
        if (decoded.api_version or expected[0], decoded.kind or expected[1]) != expected:
            message = f"unable to decode {decoded.api_version}, Kind={decoded.kind} into {self.name}"
            raise Refusal(Errored(400, message))
        return decoded

    def _object_errors(self, new: T) -> Iterator[FieldError]:
        yield from metadata.object_errors(new.metadata, namespaced=self.namespaced)
        yield from self.errors(new)

    def _update_errors(self, new: T, old: T) -> Iterator[FieldError]:
        yield from metadata.update_errors(new.metadata, old.metadata)
        error = self.frozen(self, new, old) if new.metadata.deletion_timestamp is not None else None
        if error is not None:
            yield error
        else:
            yield from self.changes(new, old)
        yield from self._object_errors(new)

    def _refuse(self, new: T, errors: Iterator[FieldError]) -> None:
        try:
            # An object may have as many mistakes as a request has room for; who mends these will see the next.
            found = list(islice(errors, _MOST_ERRORS))
        except RecursionError:
            raise Refusal(Errored(400, f"unable to check {self.name}: nested too deeply")) from None
        if found:
            status = invalid_status(group=self.group, kind=self.name, name=new.metadata.name, errors=found)
            raise Refusal(Failure(status))
