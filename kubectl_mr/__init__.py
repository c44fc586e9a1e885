"""`kubectl mr`: ManagedResources for people, as Flux and its kin have made them expect it.

    commands/    a module a command: its flags, and what it reads; thin
    garden/      another plugin, `kubectl gardener`
    seed_sets/   and another, `kubectl mss`
    plugin       what the command lines of all have in common
    options      the flags that commands share
    session      from flags to a cluster; errors, in words that help, and exit codes
    transport    HTTP that takes little to import
    style        what may be coloured, tables, trees; plain functions from values to text
    output       data on stdout (text, JSON, YAML, names), progress on stderr
    states       what state a ManagedResource is in, in one word and a message
    live         objects as they are in the cluster, and their health
    agents       what their Leases tell of them
    desired      objects as they ought to be: out of Secrets, by the rules of the agent
    preview      what the agent would do to objects, by dry runs
    revisions    versions that were applied, and are kept
    changes      what differs between two objects, by path
    packing      manifests into Secrets and out of them
    files        manifests in files and directories
    offline      what a command without a cluster needs to know of one

The rules are the agent's and the webhooks' own: nothing is decided here that they decide. Nothing keeps running,
nothing is stored, and nothing is written to a cluster but what a command says in its name.
"""
