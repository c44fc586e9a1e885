"""The admission server, and what has to be done around it.

    python -m webhooks --config FILE          serve
    python -m webhooks configurations …       print or install the webhook configurations
    python -m webhooks certificates …         make and renew the certificates

The commands beside the server have parsers of their own, in their packages. Errors of command line and configuration
end the process here, with a hint how to use it; all later ones are `process.runner`'s business.
"""

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Never

from config.load import LoadedConfig
from process.flags import Exit, Flags, about, parse
from process.runner import run_process
from process.start import introduce, load_configuration
from process.version import user_agent
from webhooks.app import Setup, compose

PROGRAM = "resource-manager-webhooks"
SUMMARY = "Serves admission webhooks: what API servers ask before they store an object."

_MOST_WORKERS = 64


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise ValueError(f'"{text}" is not a whole number from 1 to {_MOST_WORKERS}')
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFlags(Flags):
    workers: int = field(
        default=1,
        metadata=about("number of processes that answer requests, about one a core", metavar="N", parse=_workers),
    )


def _configurations(arguments: Sequence[str]) -> int:
    from webhooks.configurations import command

    return command.main(arguments)


def _certificates(arguments: Sequence[str]) -> int:
    from webhooks.certificates import command

    return command.main(arguments)


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "configurations": _configurations,
    "certificates": _certificates,
}
"""Each imports its package when it is called: the server does without them."""


def main() -> Never:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        sys.exit(COMMANDS[arguments[0]](arguments[1:]))
    try:
        flags = parse(WebhookFlags, arguments, program=PROGRAM, summary=SUMMARY)
        loaded = load_configuration(flags, program=PROGRAM)
    except Exit as end:
        sys.exit(end.show())
    _serve(flags, loaded)


def _serve(flags: WebhookFlags, loaded: LoadedConfig) -> Never:
    config = loaded.config
    reported = introduce(flags, loaded)
    setup = Setup(config=config, user_agent=user_agent(reported), environment=os.environ)
    if flags.workers == 1:
        run_process(functools.partial(compose, setup), grace_period=config.graceful_shutdown_timeout)
    from webhooks.workers import run_workers

    try:
        run_workers(setup, flags.workers)
    except OSError as error:
        sys.exit(Exit(1, stdout=str(error)).show())


if __name__ == "__main__":
    main()
