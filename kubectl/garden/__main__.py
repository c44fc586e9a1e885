"""Command line of `kubectl gardener`."""

from functools import partial

from kubectl.plugin import Plugin

COMMANDS = {
    "list": "List Shoots of all Projects, those with problems first.",
    "why": "Explain why an object waits or fails, and show the next steps.",
    "flow": "Show the tasks of the running or last flow of a Shoot or Seed, over time.",
    "diff": "Show the changes of the next reconciliation of a Shoot.",
    "page": "Show Shoots, Seeds and ManagedResources in a browser, problems first.",
    "kubeconfig": "Create a short-lived kubeconfig for a Shoot.",
    "target": "Select the garden, a Project, a Seed or a Shoot for kubectl in the current shell.",
    "wait": "Wait for the end of an operation, or for a condition of Shoots.",
    "reconcile": "Reconcile Shoots now.",
    "retry": "Retry the failed operation of Shoots.",
    "hibernate": "Hibernate Shoots.",
    "wake": "Wake up hibernated Shoots.",
    "maintain": "Maintain Shoots now, as in their maintenance time window.",
    "rotate": "Rotate credentials of Shoots.",
    "move": "Move the control planes of Shoots to another Seed.",
    "evacuate": "Move all Shoots off a Seed.",
    "delete": "Delete Shoots.",
    "diag": "Write an archive about a Shoot for support, without secrets.",
    "bootstrap-token": "Create a token with which the gardenlet of a new Seed enters the garden.",
}

PLUGIN = Plugin("gardener", COMMANDS, package="kubectl.garden.commands")


@PLUGIN.group
def app() -> None:
    """Inspect a garden, operate its Shoots, and get access to them.

    Prints data to stdout, all else to stderr. Exit codes: 0 success, 1 failure, 2 invalid command line.
    """


main, complete = partial(PLUGIN.main, app), partial(PLUGIN.complete, app)


if __name__ == "__main__":
    main()
