"""Which control loops there are: what a leader runs."""

from agent.scheduler.context import Context
from agent.table import Declare, Table
from config.scheduler.schema import SchedulerConfiguration

CONTROLLERS = Table[SchedulerConfiguration, Context]()


@CONTROLLERS.always
def shoot() -> Declare[Context]:
    from agent.scheduler.shoot.controller import declare

    return declare
