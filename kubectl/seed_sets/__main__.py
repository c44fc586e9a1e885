"""Command line of `kubectl mss`."""

from functools import partial

from kubectl.plugin import Plugin

COMMANDS = {
    "history": "List the revisions of a ManagedSeedSet's templates, or show one.",
    "undo": "Roll back to previous templates.",
    "status": "Show whether all replicas are ready and updated, or wait for that.",
}

PLUGIN = Plugin("mss", COMMANDS, package="kubectl.seed_sets")


@PLUGIN.group
def app() -> None:
    """Show the progress of updates of ManagedSeedSets, and undo them.

    Prints data to stdout, all else to stderr. Exit codes: 0 success, 1 failure, 2 invalid command line.
    """


main, complete = partial(PLUGIN.main, app), partial(PLUGIN.complete, app)


if __name__ == "__main__":
    main()
