"""Command line of `kubectl gardener`."""

from typing import Never

from kubectl.plugin import Plugin

COMMANDS = {
    "why": "Show what an object waits for, what is wrong with it, and what comes next.",
    "flow": "Show the tasks of the running or last flow of a Shoot or Seed, over time.",
    "diff": "Show what the next reconciliation of a Shoot would change.",
    "kubeconfig": "Make a kubeconfig for a Shoot, valid for a short time.",
}

PLUGIN = Plugin("gardener", COMMANDS, package="kubectl.garden.commands")


@PLUGIN.group
def app() -> None:
    """Inspect a garden, and get access to its Shoots.

    Data goes to stdout, all else to stderr. Exit codes: 0 success, 1 failure, 2 the command line is wrong.
    """


def main() -> Never:
    PLUGIN.main(app)


def complete() -> None:
    PLUGIN.complete(app)


if __name__ == "__main__":
    main()
