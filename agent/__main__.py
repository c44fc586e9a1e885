"""The agent: `python -m agent --config FILE`.

Errors of command line and configuration end the process here, with a hint how to use it; all later ones are
`process.runner`'s business.
"""

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never, cast

import orjson

from agent.app import compose
from config.errors import ConfigError
from config.load import LoadedConfig, load
from config.overrides import Overrides
from kube.election import LeadershipLost
from process.flags import Exit, Flags, parse, start_failure
from process.logging import configure_logging, get_logger
from process.metrics import describe_process
from process.runner import run_process
from process.tracing import check_installed
from process.version import COMPONENT, user_agent, version

PROGRAM = "resource-manager-agent"
SUMMARY = "Applies what ManagedResources in the source cluster hold to the target cluster, and keeps it so."


def main() -> Never:
    try:
        flags = parse(Flags, sys.argv[1:], program=PROGRAM, summary=SUMMARY)
        loaded = _load(flags)
    except Exit as end:
        sys.exit(end.show())
    config = loaded.config
    configure_logging(level=cast("Any", config.log_level), log_format=cast("Any", config.log_format))
    reported = version(flags.version_override)
    _log_start(reported, flags.flag_lines(), loaded.warnings)
    describe_process(version=reported, configuration=orjson.dumps(config, option=orjson.OPT_SORT_KEYS))
    run_process(
        functools.partial(compose, config, user_agent=user_agent(reported), environment=os.environ),
        grace_period=config.graceful_shutdown_timeout,
        abort_on=(LeadershipLost,),
    )


def _load(flags: Flags) -> LoadedConfig:
    overrides = Overrides(
        health_probe_bind_address=str(flags.health_probe_bind_address or ""),
        metrics_bind_address=str(flags.metrics_bind_address or ""),
        extra_target_namespaces=flags.extra_target_namespace,
    )
    try:
        loaded = load(Path(flags.config), overrides=overrides, environment=os.environ)
        check_installed(loaded.config.tracing)
        return loaded
    except ConfigError as error:
        raise start_failure(str(error), Flags, program=PROGRAM) from error


def _log_start(reported: str, flag_lines: Sequence[str], warnings: Sequence[str]) -> None:
    log = get_logger()
    log.info(f"Starting {COMPONENT}", version=reported)
    for line in flag_lines:
        log.info(line)
    for warning in warnings:
        log.info(warning)


if __name__ == "__main__":
    main()
