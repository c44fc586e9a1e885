"""What the rules need to know of the clusters.

All of it is read when a request is decided, and not from a cache: an approval is as final as a denial, and neither may
rest on what was true a moment ago. A kubelet asks once in the weeks that a certificate is good for; following all Nodes
and Machines all the time would cost far more.
"""

import structlog

from agent.resource_manager.csr_approver.rules.client_certificates import Machine
from gardener import keys
from gardener.api.kinds import MACHINES
from kube.errors import KindNotServed, KubeError
from kube.names import dns_subdomain_problems, label_value_problems
from kube.objects import Object, labels
from kube.resources import NODES
from kube.runtime.client import Client, Form, Selection
from kube.runtime.discovery import Discovery

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ClusterLookups:
    """Reads; every method raises KubeError if it can't, also if there is no Machine API.

    Args:
        machine_namespace: where Machines are; None: they are not checked.
    """

    def __init__(self, *, source: Client, target: Client, machine_namespace: str | None) -> None:
        self._source = source
        self._target = target
        self.machine_namespace = machine_namespace

    async def node(self, name: str) -> Object | None:
        return await self._target.find(NODES, name) if name else None

    async def machines_of_node(self, node_name: str) -> int | None:
        if self.machine_namespace is None:
            return None
        if label_value_problems(node_name):
            return 0  # no label can name it, and a selector must not be made of it
        return len(await self._machines(label_selector=f"{keys.MACHINE_NODE}={node_name}"))

    async def machine(self, name: str) -> Machine | None:
        if dns_subdomain_problems(name):
            return None
        if self.machine_namespace is None:
            return Machine(name)
        # A list distinguishes a Machine that does not exist from an API that does not exist.
        found = await self._machines(field_selector=f"metadata.name={name}")
        return Machine(labels(found[0]).get(keys.MACHINE_NODE) or "") if found else None

    async def _machines(self, *, label_selector: str = "", field_selector: str = "") -> list[Object]:
        selection = Selection(
            namespace=self.machine_namespace or "", label_selector=label_selector, field_selector=field_selector
        )
        return await self._source.list(MACHINES, selection, form=Form.METADATA)


async def warn_without_machines(discovery: Discovery, namespace: str | None) -> None:
    """Without the Machine API nothing can be decided; that is to be known before the first Node waits."""
    if namespace is None:
        return
    try:
        await discovery.find(MACHINES.api_version, MACHINES.kind)
    except KindNotServed:
        log.error(
            "The source cluster has no Machines, so no request can be decided;"
            " correct controllers.csrApprover.machineNamespace or the source cluster",
            namespace=namespace,
            kind=f"{MACHINES.api_version} {MACHINES.kind}",
        )
    except KubeError as error:
        log.info("It is not known yet whether the source cluster has Machines", error=str(error))
