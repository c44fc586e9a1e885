"""Command line of a plugin, of which there are three. A command's module is imported when it is used: `get` must not
pay for the imports of `admit`.

    PLUGIN = Plugin("mr", {"get": "List ..."}, package="kubectl.mr.commands")

    @PLUGIN.group
    def app() -> None: ...

    PLUGIN.main(app)
"""

import copy
import gc
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc
from typing import Any, Never, cast

import click

from process.lifetime import exit_now

_RARELY = 50_000
"""New objects before a garbage collection."""


@dataclass(frozen=True, slots=True)
class Plugin:
    name: str
    """Name as in `kubectl NAME`."""
    commands: Mapping[str, str]
    """Descriptions of the commands."""
    package: str
    """Package with a module per command."""

    @property
    def program(self) -> str:
        return f"kubectl-{self.name}"

    @property
    def words(self) -> str:
        """Name on the command line of users."""
        return f"kubectl {self.name}"

    def load(self, name: str) -> click.Command:
        command: click.Command = copy.copy(import_module(f"{self.package}.{name.replace('-', '_')}").command)
        if structlog := sys.modules.get("structlog"):
            # Logs are for programs: important ones become errors here. Importing structlog takes 50 ms, with rich.
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        command.name, command.help = name, f"{self.commands[name]}\n\n{cleandoc(command.help or '')}"
        return command

    def group(self, function: Callable[[], None]) -> click.Group:
        """Make the command line of a function whose docstring is its help; `obj` of contexts is the program."""
        settings = {"help_option_names": ["-h", "--help"], "obj": self.program}
        made: click.Group = click.group(cls=_Commands, no_args_is_help=True, context_settings=settings, plugin=self)(
            _with_flags(function)
        )
        return made

    def main(self, app: click.Group) -> Never:
        # Imported modules contain no garbage, and repeated collection during imports takes long.
        gc.set_threshold(_RARELY)
        exit_now(self._exit_code(app))

    def complete(self, app: click.Group) -> None:
        """Run the program `kubectl_complete-NAME`."""
        from kubectl.completion import print_completions

        print_completions(app, self.program)

    def _exit_code(self, app: click.Group) -> int:
        try:
            app(prog_name=self.program)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        except Exception as error:  # noqa: BLE001 - the message of a defect may contain texts of others
            from kubectl.output import crashed

            crashed(self.program, error)
            return 1
        return 0


def plugin_of(ctx: click.Context) -> Plugin:
    return cast("_Commands", ctx.find_root().command).plugin


class _Context(click.Context):
    """Uses the users' name of the command in help and errors; completion in a shell uses the name of the program."""

    @property
    def command_path(self) -> str:
        return plugin_of(self).words


class _Commands(click.Group):
    """Knows the names of all commands, and imports the one that is used."""

    context_class = _Context

    def __init__(self, *, plugin: Plugin, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.plugin = plugin
        for name, text in plugin.commands.items():
            self.add_command(click.Command(name, help=text))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        return list(self.plugin.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in self.plugin.commands:
            return args[0], self.plugin.load(args[0]), args[1:]
        return super().resolve_command(ctx, args)


# --- flags of all plugins


def _show_version(ctx: click.Context, _parameter: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from gardener.distribution import version

        click.echo(f"{plugin_of(ctx).words} {version()}")
        ctx.exit()


def _complete(ctx: click.Context, parameter: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from kubectl import completion

        do = completion.install if parameter.name == "install_completion" else completion.show
        do(ctx.command, plugin_of(ctx).program)
        ctx.exit()


_FLAGS = (
    ("--version", _show_version, "Show the version and exit."),
    ("--install-completion", _complete, "Install completion for the current shell."),
    (
        "--show-completion",
        _complete,
        "Show completion for the current shell, to copy it or customize the installation.",
    ),
)


def _with_flags(function: Callable[[], None]) -> Callable[[], None]:
    for name, callback, text in reversed(_FLAGS):
        option = click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=text)
        function = option(function)
    return function
