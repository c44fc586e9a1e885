"""Restart controllers labelled for restart although their spec is unchanged."""

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.shoot.main.operation import ShootOperation
from kube.objects import Key, key, uid
from kube.resources import PODS
from kube.runtime.client import Form, Selection

_TASK = "restartControlPlanePods"
_RESTARTED = "maintenance.gardener.cloud/restart=true"


def _not_asked(operation: ShootOperation) -> bool:
    return not operation.is_asked(_TASK)


async def controllers(operation: ShootOperation) -> None:
    """Delete the pods of these controllers."""
    client, selection = operation.seed.client, Selection(operation.technical_id, label_selector=_RESTARTED)
    for each in await client.list(PODS, selection, form=Form.METADATA):
        await client.delete_if_exists(PODS, Key(operation.technical_id, key(each).name), uid=uid(each))
    await operation.task_done(_TASK)


CONTROLLERS = Task(
    "restart",
    "Restarting control plane pods",
    controllers,
    after=["controller-manager", "control-plane"],
    unless=_not_asked,
)
