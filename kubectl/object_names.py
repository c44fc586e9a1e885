"""Names of objects for completion in a shell, which waits for them: they come soon or not at all, without errors."""

import asyncio
from collections.abc import Mapping
from typing import Any

from kube.resources import Resource
from kube.runtime.client import Form, Selection
from kube.visible_text import is_visible
from kubectl.session import Where, open_session

_SECONDS = 2.0
_MOST = 500


def names_of(resource: Resource, flags: Mapping[str, Any], incomplete: str) -> list[str]:
    """Of the objects of a kind, in the namespace that the flags name if they are in one."""
    where = Where(kubeconfig=flags.get("kubeconfig"), context=flags.get("context"), namespace=flags.get("namespace"))
    try:
        return sorted(
            name for name in asyncio.run(_names(resource, where)) if name.startswith(incomplete) and is_visible(name)
        )
    except Exception:  # noqa: BLE001 - no completion is the answer to whatever goes wrong
        return []


async def _names(resource: Resource, where: Where) -> list[str]:
    async with asyncio.timeout(_SECONDS), open_session(where) as session:
        selection = Selection(namespace=session.namespace if resource.namespaced else "")
        page = await session.source.client.list_page(resource, selection, form=Form.METADATA, limit=_MOST)
        return [item["metadata"]["name"] for item in page["items"]]
