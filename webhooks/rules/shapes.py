"""Which types the fields have that a webhook touches; everything else in an object is none of its business.

A `Shape` declares exactly those fields, as a mapping from their names in JSON to their types:

    {"metadata": METADATA, "spec": {"priority": int, "volumes": [{"name": str}]}}

Every field is optional and may be null. Checking costs a few microseconds and lets unknown fields and nulls pass, as
the original's decoder does; rules then work on the plain JSON, so nothing that they do not know is lost or added. An
API server sends nothing that fails here, but what a handler is asked is not always from one.
"""

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from kube.objects import Object
from webhooks.admission import Errored, Refusal

Strings = dict[str, str | None]
"""A map of strings, such as labels."""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

METADATA = {"labels": Strings, "annotations": Strings}


class WrongShape(ValueError):
    """An object is not what it should be; the text says which field, and why."""


class Shape:
    """What an object must be for a webhook."""

    __slots__ = ("_api_version", "_fields", "_kind")

    def __init__(self, api_version: str, kind: str, fields: Mapping[str, Any]) -> None:
        self._api_version = api_version
        self._kind = kind
        self._fields = type_of(fields)

    def check(self, obj: Any) -> None:
        """Raises: WrongShape."""
        try:
            api_version, kind = obj.get("apiVersion"), obj.get("kind")
        except AttributeError:
            raise WrongShape(f"unable to decode into {self._kind}: expected an object") from None
        # Without apiVersion and kind an object is taken for what it should be.
        if (api_version and api_version != self._api_version) or (kind and kind != self._kind):
            raise WrongShape(f"unable to decode {api_version}, Kind={kind} into {self._kind}")
        try:
            msgspec.convert(obj, self._fields)
        except msgspec.ValidationError as error:
            raise WrongShape(f"unable to decode into {self._kind}: {error}") from None

    def demand(self, obj: Any) -> None:
        """Raises: Refusal: as an undecodable object, 400."""
        try:
            self.check(obj)
        except WrongShape as error:
            raise Refusal(Errored(400, str(error))) from None


def type_of(declared: Any) -> Any:
    """The type that msgspec converts to, for what a `Shape` declares."""
    if isinstance(declared, Mapping):
        fields = [(name, type_of(inner) | None, None) for name, inner in declared.items()]
        return msgspec.defstruct("Fields", fields, gc=False)
    return GenericAlias(list, type_of(declared[0])) if isinstance(declared, list) else declared


def pod(fields: Mapping[str, Any]) -> Shape:
    return Shape("v1", "Pod", fields)


def child(parent: Object, name: str) -> Object:
    """The object in a field, which is created if it is missing or null."""
    found: Object | None = parent.get(name)
    if found is None:
        found = parent[name] = {}
    return found


def items(parent: Object, name: str) -> list[Any]:
    """The list in a field, which is created if it is missing or null."""
    found: list[Any] | None = parent.get(name)
    if found is None:
        found = parent[name] = []
    return found
