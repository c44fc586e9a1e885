"""Confirm that an object does not exist, before its absence is reported or acted upon.

A watch may be behind or hang, so an object that is missing in a store is listed by its name, with the selectors of the
view, which needs no other right than the watch. That costs a request per pass while an object is missing, and none
otherwise.
"""

from typing import TypeVar

from kube.errors import NotUnderstood
from kube.objects import Key
from kube.runtime.cache import Store
from kube.runtime.client import Client, Selection, by_name

T = TypeVar("T")


async def present(client: Client, store: Store[T], wanted: Key) -> T | None:
    """Object as kept by the store; None: the API server reports that it does not exist.

    Args: store: holds the object from then on.

    Raises: KubeError: the API server gives no answer, or the object exists and can't be understood.
    """
    view = store.view
    if wanted not in store.all_keys():
        fields = ",".join(filter(None, (by_name(wanted.name), view.field_selector)))
        selection = Selection(wanted.namespace, view.label_selector, fields)
        for found in await client.list(view.resource, selection, form=view.form):
            store.observe(found)
        if wanted in store.unread and wanted not in store.all_keys():
            raise NotUnderstood(f"{view.resource.kind} {wanted} exists, but can't be parsed; correct it")
    return store.get(wanted)
