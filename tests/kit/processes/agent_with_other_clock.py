"""`python -m tests.kit.processes.agent_with_other_clock`: the agent, whose own clock is CLOCK_AHEAD_SECONDS ahead.

Only what the program reads is moved; certificates of servers are still verified by the clock of the machine.
"""

import os
from datetime import timedelta

from kube import clock

_ahead, _now = timedelta(seconds=float(os.environ["CLOCK_AHEAD_SECONDS"])), clock.utc_now
clock.utc_now = lambda: _now() + _ahead

from agent.__main__ import main  # noqa: E402 - only now: modules that are imported take the clock over

if __name__ == "__main__":
    main()
