"""Command line of `kubectl mr`."""

from functools import partial

from kubectl.plugin import Plugin

COMMANDS = {
    "get": "List ManagedResources with their state.",
    "describe": "Show details of a ManagedResource, with remedies for problems.",
    "tree": "Show Secrets, objects and their dependents, with health.",
    "trace": "Find the ManagedResource and Secret of an object.",
    "diff": "Compare desired objects with those in the cluster.",
    "history": "List the stored revisions of a ManagedResource.",
    "rollback": "Apply a stored revision again.",
    "events": "Show Events of ManagedResources, the newest last.",
    "logs": "Show log entries of the agent about a ManagedResource.",
    "stats": "Count ManagedResources, objects and bytes.",
    "check": "Check whether the cluster meets all prerequisites.",
    "create": "Create a ManagedResource from manifests.",
    "delete": "Delete ManagedResources with their Secrets and objects.",
    "reconcile": "Reconcile ManagedResources immediately.",
    "suspend": "Suspend the reconciliation of ManagedResources.",
    "resume": "Resume the reconciliation of ManagedResources.",
    "wait": "Wait until ManagedResources are ready or deleted.",
    "decode": "Print the manifests in a Secret or file.",
    "encode": "Create compressed Secrets from manifests.",
    "render": "Print the objects to apply; works without a cluster.",
    "admit": "Show changes by webhooks; works without a cluster.",
}

PLUGIN = Plugin("mr", COMMANDS, package="kubectl.mr.commands")
load = PLUGIN.load


@PLUGIN.group
def app() -> None:
    """Inspect and control ManagedResources.

    Prints data to stdout, progress to stderr. Exit codes: 0 success, 1 failure (diff: there are differences; check: a
    problem was found), 2 invalid command line (diff: the comparison failed).
    """


main, complete = partial(PLUGIN.main, app), partial(PLUGIN.complete, app)


if __name__ == "__main__":
    main()
