"""Definition of a program, and its run: from the command line to its components.

An executable has one program or several: the `kind` in the configuration file selects the program, and nothing of the
others is imported. Errors of command line and configuration end the process here, with a usage hint; `process.runner`
handles all later ones.
"""

import argparse
import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, cast

import orjson

from kube.visible_text import LINES, printable
from process.configuration.blocks import Configuration
from process.configuration.component import Component, LoadedConfig, load
from process.configuration.errors import ConfigError
from process.configuration.fields import camel_case
from process.configuration.overrides import ClusterConnection, Overrides, namespaces_flag
from process.lifetime import may_have_lost_a_signal
from process.logging import configure_logging, get_logger
from process.tracing import check_installed

C = TypeVar("C", bound=Configuration)

_ENVIRONMENT = """\
environment variables:
{variables}  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT
                        address of the API server when there is no kubeconfig (set inside a Pod)

All other settings are in the configuration file.

example:
  KUBECONFIG=$HOME/.kube/config {program} --config config.yaml
"""

_NO_COMMANDS: Mapping[str, str] = {}
_SEMANTIC_VERSION = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})

if TYPE_CHECKING:
    from process.composition import Composition, Parts
    from process.runner import Groups

    Compose = Callable[[Composition[C]], Parts]
    """Adds a program's own parts to the common ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Generic[C]):
    """A program. Its definition does not import its parts.

    Attributes:
        name: on the command line and in traces.
        summary: a sentence for `--help`.
        elects: whether one replica leads, by the Lease of the configuration; if not, all serve alike.
        compose: imports the parts of the program.
    """

    name: str
    summary: str
    component: Component[C]
    elects: bool = True
    compose: "Callable[[], Compose[C]]"


class Exit(Exception):
    """The program has to end now: with this code, after printing these texts."""

    def __init__(self, code: int, *, stdout: str = "", stderr: str = "") -> None:
        super().__init__(stdout or stderr)
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def show(self) -> int:
        """Print the texts and return the exit code."""
        for stream, text in ((sys.stderr, self.stderr), (sys.stdout, self.stdout)):
            try:
                if text:
                    print(printable(text.rstrip("\n"), keep=LINES), file=stream, flush=True)
            except BrokenPipeError:  # as by `--help | head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Values of flags; empty if a flag is not set. `process.configuration.overrides` parses the addresses."""

    config: str
    extra_namespaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Namespaces by the name of the cluster."""
    health_probe_bind_address: str = ""
    metrics_bind_address: str = ""
    version: str = "false"
    check: bool = False
    """Whether the configuration is only checked."""

    @property
    def version_override(self) -> str:
        """Return the version to report; empty if the command line sets none."""
        return self.version if self.version.startswith("v") else ""

    def flag_lines(self) -> list[str]:
        """Return the lines to log at the start, one per flag, by name."""
        values = {"help": "false", "check": str(self.check).lower()}
        for declared in dataclasses.fields(self):
            value = getattr(self, declared.name)
            if isinstance(value, str):
                values[declared.name.replace("_", "-")] = value
        for cluster, namespaces in self.extra_namespaces.items():
            values[namespaces_flag(cluster)] = f"[{','.join(namespaces)}]"
        return [f"FLAG: --{name}={values[name]}" for name in sorted(values)]


def run(programs: Sequence[Program[Any]], *, version: str, commands: Mapping[str, str] = _NO_COMMANDS) -> Never:
    """Run the program of the configuration file; the first one, if the file has no kind.

    Args:
        programs: of the executable.
        version: that the executable reports, such as `v1.2.3`.
        commands: further commands of the executable, for `--help`: summaries by name.
    """
    try:
        flags = parse(sys.argv[1:], programs, version=version, commands=commands)
        program, loaded = _configured(flags, programs)
        if flags.check:
            raise Exit(0, stdout="\n".join([*loaded.warnings, f"{flags.config} is a valid {program.component.kind}"]))
    except Exit as end:
        sys.exit(end.show())
    _run(program, flags, loaded, version=flags.version_override or version)


def _configured(flags: Flags, programs: Sequence[Program[Any]]) -> tuple[Program[Any], LoadedConfig[Any]]:
    """Return the selected program and its configuration.

    Raises:
        Exit: the configuration is invalid; with the reason, and a usage hint.
    """
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


def _run(program: Program[Any], flags: Flags, loaded: LoadedConfig[Any], *, version: str) -> Never:
    # Not earlier: this takes most of the time of a start.
    from process.composition import Composition
    from process.metrics import describe_process
    from process.runner import run_process

    config, component = loaded.config, program.component
    configure_logging(level=cast("Any", config.log_level), log_format=cast("Any", config.log_format))
    log = get_logger()
    log.info(f"Starting {component.name}", version=version)
    for line in (*flags.flag_lines(), *loaded.warnings):
        log.info(line)
    if may_have_lost_a_signal():
        log.warning("A SIGTERM right after the start of process 1 is lost; start it by env --block-signal=TERM")
    configuration = orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    describe_process(version=version, configuration=configuration, prefix=component.metrics_prefix)
    compose = program.compose()

    async def composed() -> "Groups":
        base = Composition(
            config,
            component=component,
            service=program.name,
            elects=program.elects,
            version=version,
            environment=os.environ,
        )
        return base.groups(compose(base))

    run_process(composed, grace_period=config.graceful_shutdown_timeout, abort_on=Composition.abort_on)


# --- the command line


def parse(
    arguments: Sequence[str],
    programs: Sequence[Program[Any]],
    *,
    version: str,
    commands: Mapping[str, str] = _NO_COMMANDS,
) -> Flags:
    """Parse the command line of an executable; its first program gives it the name.

    Raises:
        Exit: with code 0 after `--help` and `--version`, with code 1 for any error.
    """
    program, component = programs[0].name, programs[0].component.name
    clusters = tuple(dict.fromkeys(cluster for each in programs for cluster in each.component.clusters))
    parser = _build_parser(program, _summary(programs), clusters, commands)
    # The value of this flag is optional, and never the next argument.
    given = ["--version=true" if argument == "--version" else argument for argument in arguments]
    try:
        values, extras = parser.parse_known_args(given)
    except _UsageError as error:
        raise start_failure(str(error), program=program) from None
    unknown = [argument for argument in extras if argument != "--"]
    if unknown:
        raise start_failure(_describe_unknown(unknown[0]), program=program)
    if values.help:
        raise Exit(0, stdout=parser.format_help())
    if values.version == "true":
        raise Exit(0, stdout=f"{component} {version}")
    if values.version == "raw":
        system = f"{sys.implementation.name} {sys.version.split()[0]}, {sys.platform}"
        raise Exit(0, stdout=f"{component} {version} ({system})")
    if not values.config:
        raise start_failure("missing config file", program=program)
    return Flags(
        config=values.config,
        extra_namespaces={
            cluster.name: tuple(getattr(values, namespaces_flag(cluster.name)))
            for cluster in clusters
            if cluster.takes_namespaces
        },
        health_probe_bind_address=values.health_probe_bind_address,
        metrics_bind_address=values.metrics_bind_address,
        version=values.version,
        check=values.check,
    )


def start_failure(text: str, *, program: str) -> Exit:
    """Return the exit for an error before logging is set up: command line, configuration file, logging.

    The text goes to standard output, usage and text to standard error.
    """
    usage = _build_parser(program).format_usage()
    hint = f"Run `{program} --help` for a description of the flags."
    return Exit(1, stdout=text, stderr=f"{usage}{hint}\nError: {text}")


def _summary(programs: Sequence[Program[Any]]) -> str:
    """Return the summaries of the programs, by the kind of their configuration if there are several."""
    summaries = [f"{program.component.kind}: {program.summary}" for program in programs]
    return "\n".join(summaries) if len(programs) > 1 else programs[0].summary


def _variable(cluster: ClusterConnection) -> str:
    return (
        f"  {cluster.variable:<22}kubeconfig of the {cluster.name} cluster; "
        f"overrides {camel_case(cluster.attribute)}.kubeconfig\n"
    )


def _listed(commands: Mapping[str, str]) -> str:
    if not commands:
        return ""
    lines = (f"  {name:<22}{summary}; see {name} --help\n" for name, summary in commands.items())
    return f"commands, instead of flags:\n{''.join(lines)}\n"


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Never:
        raise _UsageError(message)


def _build_parser(
    program: str,
    summary: str = "",
    clusters: Sequence[ClusterConnection] = (),
    commands: Mapping[str, str] = _NO_COMMANDS,
) -> _Parser:
    variables = "".join(dict.fromkeys(map(_variable, clusters)))
    parser = _Parser(
        prog=program,
        usage=f"{program} --config FILE [flags]",
        description=summary,
        epilog=_listed(commands) + _ENVIRONMENT.format(program=program, variables=variables),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    flags = parser.add_argument_group("flags")

    def add(name: str, help_text: str, **settings: Any) -> None:
        flags.add_argument(f"--{name}", help=help_text, **settings)

    flags.add_argument("-h", "--help", action="store_true", help="show this help and exit")
    add("config", "path of the configuration file; required", metavar="FILE", default="")
    for cluster in clusters:
        if cluster.takes_namespaces:
            add(
                namespaces_flag(cluster.name),
                f"additional namespace of the {cluster.name} cluster to watch, "
                f"besides {camel_case(cluster.attribute)}.namespaces; repeatable",
                dest=namespaces_flag(cluster.name),
                metavar="NAMESPACE",
                action="append",
                default=[],
            )
    flags.add_argument("--check", action="store_true", help="check the configuration file and exit")
    add(
        "health-probe-bind-address",
        "address of /healthz and /readyz; overrides server.healthProbes",
        metavar="[HOST]:PORT",
        default="",
    )
    add("metrics-bind-address", "address of /metrics; overrides server.metrics", metavar="[HOST]:PORT", default="")
    add(
        "version",
        "print the version (raw: in detail) and exit; --version=vX.Y.Z sets the version to report",
        metavar="{true,raw,vX.Y.Z}",
        type=_version_request,
        default="false",
    )
    return parser


def _version_request(text: str) -> str:
    if text in _TRUE:
        return "true"
    if text in _FALSE:
        return "false"
    if text == "raw" or _SEMANTIC_VERSION.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f'"{text}" is not one of true, false, raw, or a version such as v1.2.3')


def _describe_unknown(argument: str) -> str:
    if argument.startswith("-"):
        return f"unknown flag: {argument.partition('=')[0]}"
    return f'unexpected argument "{argument}"; only flags are taken'
