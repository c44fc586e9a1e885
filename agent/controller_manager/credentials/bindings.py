"""The bindings of both kinds, as the control loops of what they refer to watch them."""

from agent.controller_manager.common.api import CREDENTIALS_BINDINGS_VIEW, SECRET_BINDINGS_VIEW
from agent.controller_manager.common.protection import look
from agent.controller_manager.common.rules.bindings import Bound
from gardener.garden.users import References, provider_types
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, SECRET_BINDING_REFERENCE
from kube.cache import Caches, Change
from kube.client import Client
from kube.loop import ControlLoop, enqueue_mapped
from kube.objects import Key, Object


class Bindings:
    """All of both kinds, watched by a control loop of what they refer to.

    Args: index: the one by `references`, of bindings of both kinds.
    """

    def __init__(self, loop: ControlLoop, caches: Caches, references: References, *, index: str) -> None:
        def keys(change: Change[Object]) -> set[Key]:
            (old, old_types), (new, new_types) = (_said(obj, references) for obj in (change.old, change.new))
            return old ^ new if old_types == new_types else old | new

        handler = enqueue_mapped(keys)
        self._index = index
        self._references = references
        self._stores = {
            SECRET_BINDING_REFERENCE: loop.watch(caches, SECRET_BINDINGS_VIEW, handler),
            CREDENTIALS_BINDING_REFERENCE: loop.watch(caches, CREDENTIALS_BINDINGS_VIEW, handler),
        }

    def of(self, name: Key) -> Bound[Object]:
        """All that refer to an object."""
        return {label: store.values_by_index(self._index, name) for label, store in self._stores.items()}

    async def look(self, client: Client, name: Key) -> None:
        """Have the caches know of those that refer to an object now. Raises KubeError."""
        for store in self._stores.values():
            await look(client, store, lambda binding: name in self._references(binding))


def _said(binding: Object | None, references: References) -> tuple[set[Key], list[str]]:
    return (set(), []) if binding is None else (set(references(binding)), provider_types(binding))
