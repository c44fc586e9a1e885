"""Command line of `kubectl mr`."""

from typing import Never

from kubectl.plugin import Plugin

COMMANDS = {
    "get": "List ManagedResources and what state they are in.",
    "describe": "Show all about one, and what to do about what is wrong.",
    "tree": "Show Secrets, objects and what these own, with health.",
    "trace": "Find out where an object comes from.",
    "diff": "Compare what is asked for with what is there.",
    "history": "List the applied versions that are kept.",
    "rollback": "Have a kept version applied again.",
    "events": "Show their Events, the newest last.",
    "logs": "Show what the agent has logged about one.",
    "stats": "Count ManagedResources, objects and bytes.",
    "check": "See whether the cluster has all that is needed.",
    "create": "Make a ManagedResource out of manifests.",
    "delete": "Delete ManagedResources with their Secrets and objects.",
    "reconcile": "Have ManagedResources looked at now.",
    "suspend": "Have ManagedResources left alone for a while.",
    "resume": "Have ManagedResources reconciled again.",
    "wait": "Wait until ManagedResources are ready, or gone.",
    "decode": "Print the manifests in a Secret or file.",
    "encode": "Make Secrets out of manifests, compressed.",
    "render": "Print what would be applied; needs no cluster.",
    "admit": "Show what webhooks would do; needs no cluster.",
}

PLUGIN = Plugin("mr", COMMANDS, package="kubectl.mr.commands")
load = PLUGIN.load


@PLUGIN.group
def app() -> None:
    """Inspect and control ManagedResources.

    Data goes to stdout, progress to stderr. Exit codes: 0 all well, 1 not (diff: there are differences; check:
    something is wrong), 2 the command line is wrong (diff: the comparison failed).
    """


def main() -> Never:
    PLUGIN.main(app)


def complete() -> None:
    PLUGIN.complete(app)


if __name__ == "__main__":
    main()
