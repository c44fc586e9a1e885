"""The agent: `python -m agent --config FILE`.

Errors of command line and configuration end the process here, with a hint how to use it; all later ones are
`process.runner`'s business.
"""

import functools
import os
import sys
from typing import Never

from agent.app import compose
from kube.election import LeadershipLost
from process.flags import Exit, Flags, parse
from process.runner import run_process
from process.start import introduce, load_configuration
from process.version import user_agent

PROGRAM = "resource-manager-agent"
SUMMARY = "Applies what ManagedResources in the source cluster hold to the target cluster, and keeps it so."


def main() -> Never:
    try:
        flags = parse(Flags, sys.argv[1:], program=PROGRAM, summary=SUMMARY)
        loaded = load_configuration(flags, program=PROGRAM)
    except Exit as end:
        sys.exit(end.show())
    reported = introduce(flags, loaded)
    run_process(
        functools.partial(compose, loaded.config, user_agent=user_agent(reported), environment=os.environ),
        grace_period=loaded.config.graceful_shutdown_timeout,
        abort_on=(LeadershipLost,),
    )


if __name__ == "__main__":
    main()
