"""Adoption of existing objects that no ManagedResource owns.

They are adopted, unless an annotation of the manifest or of the ManagedResource refuses it. An unknown value refuses
it, too: its author wanted to protect something.
"""

from gardener import keys
from gardener.managed_resource.messages import exists_text
from kube.objects import Object, annotations, metadata

_STAMPS = {"labels": {keys.MANAGED_BY}, "annotations": {keys.ORIGIN, keys.DESCRIPTION}}


def adoption_problem(manifest: Object, *, resource: str, of_managed_resource: str) -> str:
    """The text of the error; empty if the object may be taken over.

    Args:
        manifest: of the object.
        resource: its resource string.
        of_managed_resource: the value of the annotation of the ManagedResource; empty if it has none.
    """
    values = {"object": annotations(manifest).get(keys.ADOPT) or "", "ManagedResource": of_managed_resource}
    for what, value in values.items():
        if value == keys.ADOPT_NEVER:
            return exists_text(resource, f'the annotation {keys.ADOPT} of the {what} is "{value}"')
        if value:
            unknown = f'the annotation {keys.ADOPT} of the {what} is "{value}"; only "{keys.ADOPT_NEVER}" is valid'
            return exists_text(resource, unknown)
    return ""


def is_unowned(live: Object) -> bool:
    """Whether no ManagedResource owns the object."""
    return not annotations(live).get(keys.ORIGIN)


def without_stamps(obj: Object) -> Object:
    """The object without the marks of adoption, which would hide other changes."""
    meta = dict(metadata(obj))
    for name, stamps in _STAMPS.items():
        rest = {key: value for key, value in (meta.pop(name, None) or {}).items() if key not in stamps}
        if rest:
            meta[name] = rest
    return {**obj, "metadata": meta}
