"""Whether Shoots are on a Seed, as the API server itself says it."""

from gardener.api.garden import SHOOTS
from gardener.garden.shoots import selectors_of_users
from kube.runtime.client import Client, Form, Selection


async def is_used(client: Client, seed: str) -> bool:
    """Whether a Shoot is on the Seed, or has not left it yet. Raises KubeError."""
    for selector in selectors_of_users(seed):
        page = await client.list_page(SHOOTS, Selection(field_selector=selector), form=Form.METADATA, limit=1)
        if page.get("items"):
            return True
    return False
