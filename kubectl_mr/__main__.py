"""The command line. A command's module is imported when it is used: `get` must not pay for what `admit` needs."""

import logging
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "get": "List ManagedResources and what state they are in.",
    "describe": "Show all about one, and what to do about what is wrong.",
    "tree": "Show Secrets, objects and what these own, with health.",
    "trace": "Find out where an object comes from.",
    "diff": "Compare what is asked for with what is there.",
    "events": "Show what was told about them, the newest last.",
    "stats": "Count ManagedResources, objects and bytes.",
    "check": "See whether the cluster has all that is needed.",
    "create": "Make a ManagedResource out of manifests.",
    "reconcile": "Have ManagedResources looked at now.",
    "suspend": "Have ManagedResources left alone for a while.",
    "resume": "Have ManagedResources looked after again.",
    "wait": "Wait until ManagedResources are ready, or gone.",
    "decode": "Print the manifests in a Secret or file.",
    "encode": "Make Secrets out of manifests, compressed.",
    "render": "Print what would be applied; needs no cluster.",
    "admit": "Show what webhooks would do; needs no cluster.",
}


class _Commands(TyperGroup):
    """Knows the names of all commands, and imports the one that is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, text in COMMANDS.items():
            self.add_command(TyperCommand(name, help=text))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            return args[0], load(args[0]), args[1:]
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    command = import_module(f"kubectl_mr.commands.{name}").command
    if structlog := sys.modules.get("structlog"):
        # Nobody who types a command reads logs; what matters becomes an error. To import it takes 50 ms, with rich.
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    one.command(name, help=f"{COMMANDS[name]}\n\n{command.__doc__ or ''}")(command)
    return typer.main.get_command(one)


app = typer.Typer(
    cls=_Commands,
    name="kubectl mr",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _about() -> None:
    """See and steer ManagedResources.

    Data goes to stdout, progress to stderr. Exit codes: 0 all well, 1 not (diff: there are differences; check:
    something is missing), 2 the command line is wrong (diff: it could not be compared).
    """


def main() -> None:
    try:
        app(prog_name="kubectl-mr" if sys.argv[0].endswith("__main__.py") else None)
    except Exception as error:  # noqa: BLE001 - what a defect tells may hold what others wrote
        from kubectl_mr.output import crashed

        crashed(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
