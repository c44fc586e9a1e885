"""Whether Shoots are on a Seed, as the API server itself says it."""

from gardener.garden.resources import SHOOTS
from kube.client import Client, Form, Selection


async def is_used(client: Client, seed: str) -> bool:
    """Whether a Shoot is on the Seed, or has not left it yet. Raises KubeError."""
    for field in ("spec.seedName", "status.seedName"):
        selection = Selection(field_selector=f"{field}={seed}")
        page = await client.list_page(SHOOTS, selection, form=Form.METADATA, limit=1)
        if page.get("items"):
            return True
    return False
