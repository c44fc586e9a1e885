"""Completion in a shell.

kubectl completes `kubectl mr` by a program `kubectl_complete-mr`, which gets the words so far as its arguments; the
last line that it prints is the directive for the shell about the others. The other plugins work the same way.
"""

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gardener.api.garden import GROUPS
from kube.resources import Resource
from kube.runtime.client import Form, Selection
from kube.visible_text import is_visible
from kubectl.session import Where, open_session

_NO_FILES = ":4"


def print_completions(app: click.Command, program: str) -> None:
    from click.shell_completion import ShellComplete

    *words, incomplete = sys.argv[1:] or [""]
    for item in ShellComplete(app, {}, program, _variable(program)).get_completions(words, incomplete):
        # Files are of the type 'file' and have no names.
        if item.type == "plain":
            print(item.value)
    print(_NO_FILES)


def _variable(program: str) -> str:
    """Variable by which the scripts request completion, after click's rule."""
    return f"_{program.upper().replace('-', '_')}_COMPLETE"


# --- scripts of the program itself


@dataclass(frozen=True, slots=True)
class _Place:
    """Location of the completion script of a shell, in the home directory."""

    script: str
    """Path, with a place for the name of the program."""
    loaded_by: str = ""
    """Start file of the shell that has to source the script; empty: the shell finds it."""
    before: str = ""


_PLACES = {
    "bash": _Place(".bash_completions/{}.sh", loaded_by=".bashrc"),
    "zsh": _Place(".zfunc/{}.zsh", loaded_by=".zshrc", before="autoload -Uz compinit && compinit && "),
    "fish": _Place(".config/fish/completions/{}.fish"),
}


def show(command: click.Command, program: str) -> None:
    """Print the script for the shell that $SHELL names. Raises click.UsageError: there is none for it."""
    click.echo(_script(command, program, _shell()))


def install(command: click.Command, program: str) -> None:
    """Write the script to a file that the shell loads when it starts; a second time changes nothing."""
    shell = _shell()
    place = _PLACES[shell]
    file = Path.home() / place.script.format(program)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_script(command, program, shell))
    if place.loaded_by:
        start = Path.home() / place.loaded_by
        line = f"{place.before}source {shlex.quote(str(file))}"
        known = start.read_text() if start.exists() else ""
        if line not in known.splitlines():
            start.write_text(f"{known}\n{line}\n")
    click.echo(f"{shell} completion installed in {file}; it is there in new shells")


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _PLACES:
        raise click.UsageError(f"no completion for the shell {shell or 'of $SHELL'!r}; use one of {', '.join(_PLACES)}")
    return shell


def _script(command: click.Command, program: str, shell: str) -> str:
    from click.shell_completion import get_completion_class

    made_by = get_completion_class(shell)
    assert made_by is not None
    return made_by(command, {}, program, _variable(program)).source()


# --- names of objects: they come soon or not at all, without errors


_SECONDS = 2.0
_MOST = 500


def names_of(
    resource: Resource, ctx: click.Context, incomplete: str, *, flags: Mapping[str, Any] | None = None
) -> list[str]:
    """Names of the objects of a kind, in the namespace that the flags name if the kind is namespaced.

    Args: flags: None: those of the context.
    """
    flags = ctx.params if flags is None else flags
    where = Where(
        program=ctx.obj,
        kubeconfig=flags.get("kubeconfig"),
        context=flags.get("context"),
        namespace=flags.get("namespace"),
        is_garden=resource.group in GROUPS,
    )
    try:
        return sorted(
            name for name in asyncio.run(_names(resource, where)) if name.startswith(incomplete) and is_visible(name)
        )
    except Exception:  # noqa: BLE001 - any failure means no completion
        return []


async def _names(resource: Resource, where: Where) -> list[str]:
    async with asyncio.timeout(_SECONDS), open_session(where) as session:
        selection = Selection(namespace=session.namespace if resource.namespaced else "")
        page = await session.source.client.list_page(resource, selection, form=Form.METADATA, limit=_MOST)
        return [item["metadata"]["name"] for item in page["items"]]
