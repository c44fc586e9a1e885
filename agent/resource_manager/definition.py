"""Says how to define ManagedResources in a cluster that does not serve them: until then there is nothing to do."""

from gardener.api.kinds import DEFINITION, MANAGED_RESOURCES
from kube.errors import KindNotServed, KubeError
from kube.runtime.discovery import Discovery
from process.logging import get_logger


class DefinitionCheck:
    """Looks once. That the kind comes is noticed by its watch.

    Args: discovery: of the source cluster.
    """

    name = "definition of ManagedResources"

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery

    async def start(self) -> None:
        try:
            await self._discovery.find(MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind)
        except KindNotServed:
            get_logger().error(
                "The source cluster does not serve ManagedResources; waiting for their CustomResourceDefinition",
                install=f"kubectl apply --server-side -f {DEFINITION}",
            )
        except KubeError:
            pass  # the watch reports it

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        pass
