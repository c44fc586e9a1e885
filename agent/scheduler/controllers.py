"""Which control loops there are: what a leader runs."""

from agent.scheduler.context import Context
from agent.table import Table, always
from config.scheduler.schema import SchedulerConfiguration

CONTROLLERS = Table[SchedulerConfiguration, Context]("agent.scheduler", {"shoot.controller": always})
