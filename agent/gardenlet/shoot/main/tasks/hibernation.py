"""A Shoot goes to sleep: nothing of it runs any more, its data and keys stay."""

from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import control_plane, etcd, exposure


async def sleep(operation: ShootOperation) -> None:
    """Raises NotInTimeError, ComponentError, ExtensionError, KubeError."""
    await operation.shoots.drop(operation.technical_id)
    await control_plane.scale_down(operation)
    if not operation.is_local:
        await exposure.remove_names_at_gateway(operation)
    await etcd.scale(operation, 0)
