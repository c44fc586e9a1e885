"""What a program is, and how one is run: from the command line to its components.

An executable has one program or several: the `kind` in the configuration file says which of them it is to be, and
nothing of the others is imported. Errors of command line and configuration end the process here, with a hint how to use
it; all later ones are `process.runner`'s business.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, TypeVar, cast

import orjson

from config.blocks import Configuration
from config.component import LoadedConfig, load
from config.errors import ConfigError
from config.overrides import Overrides
from process.description import Description
from process.flags import Exit, Flags, parse, start_failure
from process.logging import configure_logging, get_logger
from process.tracing import check_installed
from process.version import version

C = TypeVar("C", bound=Configuration)

if TYPE_CHECKING:
    from process.composition import Composition
    from process.runner import Groups

    Compose = Callable[[Composition[C]], Groups]
    """Adds what is a program's own to what all programs have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Description[C]):
    """A program. To make one imports nothing of what it consists of.

    Attributes:
        compose: imports what the program consists of.
    """

    compose: "Callable[[], Compose[C]]"


def run(programs: Sequence[Program[Any]]) -> Never:
    """Runs the program that the configuration file is for; the first one, if the file has no kind."""
    try:
        flags = parse(sys.argv[1:], programs)
        program, loaded = _configured(flags, programs)
    except Exit as end:
        sys.exit(end.show())
    _run(program, flags, loaded)


def _configured(flags: Flags, programs: Sequence[Program[Any]]) -> tuple[Program[Any], LoadedConfig[Any]]:
    """Raises Exit if the configuration can't be used; with the reason, and a hint how to use the program."""
    overrides = Overrides(
        health_probe_bind_address=flags.health_probe_bind_address,
        metrics_bind_address=flags.metrics_bind_address,
        extra_namespaces=flags.extra_namespaces,
    )
    components = [program.component for program in programs]
    try:
        component, loaded = load(Path(flags.config), components, overrides=overrides, environment=os.environ)
        check_installed(loaded.config.tracing)
    except ConfigError as error:
        raise start_failure(str(error), program=programs[0].name) from error
    return programs[components.index(component)], loaded


def _run(program: Program[Any], flags: Flags, loaded: LoadedConfig[Any]) -> Never:
    # Not before: this takes most of the time of a start.
    from process.composition import Composition
    from process.metrics import describe_process
    from process.runner import run_process

    config, component = loaded.config, program.component
    configure_logging(level=cast("Any", config.log_level), log_format=cast("Any", config.log_format))
    reported = version(flags.version_override)
    log = get_logger()
    log.info(f"Starting {component.name}", version=reported)
    for line in (*flags.flag_lines(), *loaded.warnings):
        log.info(line)
    configuration = orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    describe_process(version=reported, configuration=configuration, prefix=component.metrics_prefix)
    compose = program.compose()

    async def composed() -> "Groups":
        return compose(Composition(program, config, version=reported, environment=os.environ))

    run_process(composed, grace_period=config.graceful_shutdown_timeout, abort_on=Composition.abort_on)
