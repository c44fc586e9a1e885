"""Whether an object that exists, and that no ManagedResource has, is taken over.

It is, unless an annotation of its manifest or of the ManagedResource refuses that. A value that is not known refuses
it, too: who wrote it wanted to keep something.
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
            unknown = f'the annotation {keys.ADOPT} of the {what} is "{value}", and only "{keys.ADOPT_NEVER}" is known'
            return exists_text(resource, unknown)
    return ""


def is_unowned(live: Object) -> bool:
    """Whether no ManagedResource has the object."""
    return not annotations(live).get(keys.ORIGIN)


def without_stamps(obj: Object) -> Object:
    """The object without what marks it as taken over, which would hide what else was changed."""
    meta = dict(metadata(obj))
    for name, stamps in _STAMPS.items():
        rest = {key: value for key, value in (meta.pop(name, None) or {}).items() if key not in stamps}
        if rest:
            meta[name] = rest
    return {**obj, "metadata": meta}
