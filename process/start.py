"""What both programs do before they have components: read the configuration file, set up logs, say what they are."""

import os
from pathlib import Path
from typing import Any, cast

import orjson

from config.errors import ConfigError
from config.load import LoadedConfig, load
from config.overrides import Overrides
from process.flags import Flags, start_failure
from process.logging import configure_logging, get_logger
from process.metrics import describe_process
from process.tracing import check_installed
from process.version import COMPONENT, version


def load_configuration(flags: Flags, *, program: str) -> LoadedConfig:
    """The configuration file that the flags name, with what flags and environment say instead.

    Raises:
        Exit: it can't be used; with the reason, and a hint how to use the program.
    """
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
        raise start_failure(str(error), type(flags), program=program) from error


def introduce(flags: Flags, loaded: LoadedConfig) -> str:
    """Sets up logs, and tells there and in the metrics what is about to run; the version that is reported."""
    config = loaded.config
    configure_logging(level=cast("Any", config.log_level), log_format=cast("Any", config.log_format))
    reported = version(flags.version_override)
    log = get_logger()
    log.info(f"Starting {COMPONENT}", version=reported)
    for line in (*flags.flag_lines(), *loaded.warnings):
        log.info(line)
    describe_process(version=reported, configuration=orjson.dumps(config, option=orjson.OPT_SORT_KEYS))
    return reported
