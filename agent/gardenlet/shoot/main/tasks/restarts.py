"""New pods of what is as it was: of controllers, which say by a label that a restart does them good."""

from contextlib import suppress

from agent.gardenlet.shoot.main.operation import ShootOperation
from kube.errors import NotFound
from kube.objects import key, uid
from kube.resources import PODS
from kube.runtime.client import Form, Selection

_TASK = "restartControlPlanePods"
_RESTARTED = "maintenance.gardener.cloud/restart=true"


def not_asked(operation: ShootOperation) -> bool:
    return not operation.is_asked(_TASK)


async def controllers(operation: ShootOperation) -> None:
    """Raises KubeError."""
    client, selection = operation.seed.client, Selection(operation.technical_id, label_selector=_RESTARTED)
    for each in await client.list(PODS, selection, form=Form.METADATA):
        with suppress(NotFound):
            await client.delete(PODS, key(each).name, namespace=operation.technical_id, uid=uid(each))
    await operation.task_done(_TASK)
