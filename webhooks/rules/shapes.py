"""Types of the fields that a webhook uses; it ignores everything else in an object.

A `Shape` declares exactly those fields, as a mapping from their names in JSON to their types:

    {"metadata": METADATA, "spec": {"priority": int, "volumes": [{"name": str}]}}

Every field is optional and may be null. Checking costs a few microseconds and lets unknown fields and nulls pass, as
the original's decoder does; rules then work on the plain JSON, so that unknown fields are neither lost nor added.
Objects from an API server always pass, but not every request comes from one.
"""

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from kube.objects import Object
from webhooks.admission import Errored, Refusal

Strings = dict[str, str | None]
"""Map of strings, such as labels."""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

METADATA = {"labels": Strings, "annotations": Strings}


class WrongShape(ValueError):
    """An object has the wrong shape; the text has the field and the reason."""


class Shape:
    """Required shape of an object for a webhook."""

    __slots__ = ("_api_version", "_fields", "_kind")

    def __init__(self, api_version: str, kind: str, fields: Mapping[str, Any]) -> None:
        self._api_version = api_version
        self._kind = kind
        self._fields = type_of(fields)

    def check(self, obj: Any) -> None:
        """Check an object.

        Raises:
            WrongShape: it has another type, or a field has.
        """
        try:
            api_version, kind = obj.get("apiVersion"), obj.get("kind")
        except AttributeError:
            raise WrongShape(f"unable to decode into {self._kind}: expected an object") from None
        # An object without apiVersion and kind is assumed to have the expected ones.
        if (api_version and api_version != self._api_version) or (kind and kind != self._kind):
            raise WrongShape(f"unable to decode {api_version}, Kind={kind} into {self._kind}")
        try:
            msgspec.convert(obj, self._fields)
        except msgspec.ValidationError as error:
            raise WrongShape(f"unable to decode into {self._kind}: {error}") from None

    def demand(self, obj: Any) -> None:
        """Check an object.

        Raises:
            Refusal: it cannot be decoded, 400.
        """
        try:
            self.check(obj)
        except WrongShape as error:
            raise Refusal(Errored(400, str(error))) from None


def type_of(declared: Any) -> Any:
    """Return the type for msgspec that a `Shape` declares."""
    if isinstance(declared, Mapping):
        fields = [(name, type_of(inner) | None, None) for name, inner in declared.items()]
        return msgspec.defstruct("Fields", fields, gc=False)
    return GenericAlias(list, type_of(declared[0])) if isinstance(declared, list) else declared


def pod(fields: Mapping[str, Any]) -> Shape:
    return Shape("v1", "Pod", fields)


def child(parent: Object, name: str) -> Object:
    """Return the object in a field, created if it is missing or null."""
    found: Object | None = parent.get(name)
    if found is None:
        found = parent[name] = {}
    return found


def items(parent: Object, name: str) -> list[Any]:
    """Return the list in a field, created if it is missing or null."""
    found: list[Any] | None = parent.get(name)
    if found is None:
        found = parent[name] = []
    return found
