"""Command line of `kubectl gardener`."""

from functools import partial

from kubectl.plugin import Plugin

COMMANDS = {
    "why": "Explain why an object waits or fails, and show the next steps.",
    "flow": "Show the tasks of the running or last flow of a Shoot or Seed, over time.",
    "diff": "Show the changes of the next reconciliation of a Shoot.",
    "page": "Show Shoots, Seeds and ManagedResources in a browser, problems first.",
    "kubeconfig": "Create a short-lived kubeconfig for a Shoot.",
    "bootstrap-token": "Create a token with which the gardenlet of a new Seed enters the garden.",
}

PLUGIN = Plugin("gardener", COMMANDS, package="kubectl.garden.commands")


@PLUGIN.group
def app() -> None:
    """Inspect a garden, and get access to its Shoots.

    Prints data to stdout, all else to stderr. Exit codes: 0 success, 1 failure, 2 invalid command line.
    """


main, complete = partial(PLUGIN.main, app), partial(PLUGIN.complete, app)


if __name__ == "__main__":
    main()
