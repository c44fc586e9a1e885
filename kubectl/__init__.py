"""Plugins of kubectl, and their common parts.

mr/          `kubectl mr`: ManagedResources
garden/      `kubectl gardener`: objects of a garden
seed_sets/   `kubectl mss`: ManagedSeedSets
plugin       the command line of a plugin; imports the module of the command that is used
completion   in shells: scripts, names of objects
options      flags
session      from flags to a cluster; helpful errors, and exit codes
reader       objects of a garden, as far as the user may read them
kinds        kinds in words
transport    HTTP that takes little to import
style        colours, tables, trees; plain functions from values to text
output       data on stdout (text, JSON, YAML, names), progress on stderr

The rules are those of the agent and the webhooks: a plugin decides nothing that they decide. Nothing keeps running or
is stored, and the name of a command states all that it writes to a cluster.
"""
