"""The command line of a program, declared as a frozen dataclass.

`Flags` holds what both programs take. A program with flags of its own declares them in a subclass:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class WebhookFlags(Flags):
        workers: int = field(default=1, metadata=about("number of processes that serve requests", metavar="N"))

    flags = parse(WebhookFlags, sys.argv[1:], program="resource-manager-webhooks", summary="…")

The parser, the help text and the log lines about flags all follow from these fields. The type of a flag
is that of its default: a bool may be given without a value, a tuple collects a repeated flag.

Parsing never prints or exits; it raises `Exit`, which says what to print and with which code to end.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Never, Self, TypeVar

from process.version import COMPONENT, version

_ENVIRONMENT = """\
environment variables:
  KUBECONFIG            kubeconfig of the source cluster; wins over sourceClientConnection.kubeconfig
  TARGET_KUBECONFIG     kubeconfig of the target cluster; wins over targetClientConnection.kubeconfig
  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT
                        address of the API server when there is no kubeconfig (set inside a Pod)

All other settings are in the configuration file.

example:
  KUBECONFIG=$HOME/.kube/config {program} --config config.yaml
"""

_SEMANTIC_VERSION = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Exit(Exception):
    """The program has to end now: with this code, after printing these texts."""

    def __init__(self, code: int, *, stdout: str = "", stderr: str = "") -> None:
        super().__init__(stdout or stderr)
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def show(self) -> int:
        """Prints the texts and returns the exit code."""
        for stream, text in ((sys.stderr, self.stderr), (sys.stdout, self.stdout)):
            if text:
                print(text.rstrip("\n"), file=stream, flush=True)
        return self.code


@dataclass(frozen=True, slots=True)
class BindAddress:
    """Where a server listens. The empty host means all addresses; IPv6 hosts have no brackets here."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `:8080`, `127.0.0.1:8080` or `[::1]:8080`. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError(f'"{text}" is not an address; write host:port, :port or [IPv6 host]:port')
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f'"{text}" is not an address; put an IPv6 host in brackets, as in [::1]:8080')
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def about(help_text: str, *, metavar: str = "", parse: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Describes a flag, as the metadata of its field.

    Args:
        help_text: what the flag does.
        metavar: what its value is called in the help text.
        parse: reads the value; raises ValueError with a remedy.
    """
    return {"help": help_text, "metavar": metavar, "parse": parse}


def _parse_bool(text: str) -> bool:
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ValueError(f'"{text}" is neither true nor false')


def _parse_version_request(text: str) -> str:
    if text == "raw" or _SEMANTIC_VERSION.fullmatch(text):
        return text
    try:
        return "true" if _parse_bool(text) else "false"
    except ValueError:
        raise ValueError(f'"{text}" is not one of true, false, raw, or a version such as v1.2.3') from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of both programs."""

    config: str = field(
        default="",
        metadata=about("path of the configuration file; required", metavar="FILE"),
    )
    extra_target_namespace: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "one more namespace of the target cluster to cover, beside targetClientConnection.namespaces; repeatable",
            metavar="NAMESPACE",
        ),
    )
    health_probe_bind_address: BindAddress | None = field(
        default=None,
        metadata=about(
            "where /healthz and /readyz are served; wins over server.healthProbes",
            metavar="[HOST]:PORT",
            parse=BindAddress.parse,
        ),
    )
    metrics_bind_address: BindAddress | None = field(
        default=None,
        metadata=about(
            "where /metrics is served; wins over server.metrics",
            metavar="[HOST]:PORT",
            parse=BindAddress.parse,
        ),
    )
    version: str = field(
        default="false",
        metadata=about(
            "print the version (raw: in detail) and exit; --version=vX.Y.Z sets the version to report instead",
            metavar="{true,raw,vX.Y.Z}",
            parse=_parse_version_request,
        ),
    )

    @property
    def version_override(self) -> str:
        """The version to report, empty when the command line sets none."""
        return self.version if self.version.startswith("v") else ""

    def flag_lines(self) -> list[str]:
        """The lines to log at the start, one a flag, by name."""
        values = {declared.name: getattr(self, declared.name) for declared in dataclasses.fields(self)}
        values["help"] = False
        return [f"FLAG: --{_flag_name(name)}={_as_text(values[name])}" for name in sorted(values)]


F = TypeVar("F", bound=Flags)


def parse(flags_type: type[F], arguments: Sequence[str], *, program: str, summary: str) -> F:
    """Reads the command line.

    Raises:
        Exit: with code 0 after `--help` and `--version`, with code 1 for whatever is wrong with it.
    """
    parser = _build_parser(flags_type, program, summary)
    try:
        values, extras = parser.parse_known_args(_spell_out_booleans(flags_type, arguments))
    except _UsageError as error:
        raise start_failure(str(error), flags_type, program=program) from None
    unknown = [argument for argument in extras if argument != "--"]
    if unknown:
        raise start_failure(_describe_unknown(unknown[0]), flags_type, program=program)
    if values.help:
        raise Exit(0, stdout=parser.format_help())
    del values.help
    for name, value in vars(values).items():
        if isinstance(value, list):
            setattr(values, name, tuple(value))
    flags = flags_type(**vars(values))
    if flags.version == "true":
        raise Exit(0, stdout=f"{COMPONENT} {version()}")
    if flags.version == "raw":
        system = f"{sys.implementation.name} {sys.version.split()[0]}, {sys.platform}"
        raise Exit(0, stdout=f"{COMPONENT} {version()} ({system})")
    if not flags.config:
        raise start_failure("missing config file", flags_type, program=program)
    return flags


def start_failure(text: str, flags_type: type[Flags], *, program: str) -> Exit:
    """The way to end for an error before logging is set up: command line, configuration file, logging.

    The text goes to standard output, usage and text to standard error.
    """
    usage = _build_parser(flags_type, program, "").format_usage()
    hint = f"Run `{program} --help` for what the flags mean."
    return Exit(1, stdout=text, stderr=f"{usage}{hint}\nError: {text}")


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Never:
        raise _UsageError(message)


def _build_parser(flags_type: type[Flags], program: str, summary: str) -> _Parser:
    parser = _Parser(
        prog=program,
        usage=f"{program} --config FILE [flags]",
        description=summary,
        epilog=_ENVIRONMENT.replace("{program}", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    group = parser.add_argument_group("flags")
    group.add_argument("-h", "--help", action="store_true", help="show this text and exit")
    for declared in dataclasses.fields(flags_type):
        group.add_argument(
            f"--{_flag_name(declared.name)}",
            dest=declared.name,
            default=declared.default,
            action=_Collect if isinstance(declared.default, tuple) else "store",
            type=_reader(declared),
            metavar=declared.metadata["metavar"] or "true|false",
            help=declared.metadata["help"],
        )
    return parser


class _Collect(argparse.Action):
    """Appends to a list of its own, since the default is a tuple that is shared."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's interface
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 - argparse's interface
    ) -> None:
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), values])


def _reader(declared: "dataclasses.Field[Any]") -> Callable[[str], Any]:
    default = declared.default
    read: Callable[[str], Any] = str
    if declared.metadata["parse"]:
        read = declared.metadata["parse"]
    elif isinstance(default, bool):
        read = _parse_bool
    elif isinstance(default, int):
        read = _parse_int

    def read_with_reason(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None  # the one error whose text argparse shows

    return read_with_reason


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a whole number') from None


def _spell_out_booleans(flags_type: type[Flags], arguments: Sequence[str]) -> list[str]:
    """Turns `--name` into `--name=true` where a value is optional, so that it never takes the next argument."""
    optional = {
        f"--{_flag_name(declared.name)}"
        for declared in dataclasses.fields(flags_type)
        if isinstance(declared.default, bool) or declared.name == "version"
    }
    return [f"{argument}=true" if argument in optional else argument for argument in arguments]


def _describe_unknown(argument: str) -> str:
    if argument.startswith("-"):
        return f"unknown flag: {argument.partition('=')[0]}"
    return f'unexpected argument "{argument}"; only flags are taken'


def _flag_name(field_name: str) -> str:
    return field_name.replace("_", "-")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value)
