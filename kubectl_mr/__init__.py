"""`kubectl mr`: ManagedResources for people, as Flux and its kin have made them expect it.

    commands/    a module a command: its flags, and what it reads; thin
    options      the flags that commands share
    session      from flags to a cluster; errors, in words that help, and exit codes
    style        what may be coloured, tables, trees; plain functions from values to text
    output       data on stdout (text, JSON, YAML, names), progress on stderr
    states       what state a ManagedResource is in, in one word and a message
    live         objects as they are in the cluster, and their health
    desired      objects as they ought to be: out of Secrets, by the rules of the agent
    changes      what differs between two objects, by path
    packing      manifests into Secrets and out of them
    files        manifests in files and directories
    offline      what a command without a cluster needs to know of one

The rules are the agent's and the webhooks' own: nothing is decided here that they decide. Nothing keeps running,
nothing is stored, and nothing is written to a cluster but what a command says in its name.
"""
