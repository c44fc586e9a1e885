"""Plugins of kubectl, and what they share.

    mr/          `kubectl mr`: ManagedResources
    garden/      `kubectl gardener`: what a garden holds
    seed_sets/   `kubectl mss`: ManagedSeedSets
    plugin       the command line of a plugin; imports the module of the command that is used
    completion   in shells: scripts, names of objects
    options      flags
    session      from flags to a cluster; errors, in words that help, and exit codes
    reader       objects of a garden, as far as the user may read them
    kinds        kinds in words
    transport    HTTP that takes little to import
    style        what may be coloured, tables, trees; plain functions from values to text
    output       data on stdout (text, JSON, YAML, names), progress on stderr

The rules are those of the agent and the webhooks: a plugin decides nothing that they decide. Nothing keeps running or
is stored, and a command writes nothing to a cluster but what its name says.
"""
