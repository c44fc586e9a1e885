"""Control loops of a leader."""

from agent.scheduler.context import Context
from agent.table import Table, always
from config.scheduler.schema import SchedulerConfiguration

CONTROLLERS = Table[SchedulerConfiguration, Context]("agent.scheduler", {"shoot.controller": always})
