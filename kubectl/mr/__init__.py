"""`kubectl mr`: ManagedResources for people, as Flux and its kin have made them expect it.

commands/    a module a command: its flags, and what it reads; thin
parameters   the flags that commands share
live         objects as they are in the cluster, and their health
causes       why objects are not healthy
agents       what their Leases say about them
desired      objects as they ought to be: out of Secrets, by the rules of the agent
preview      what the agent would do to objects, by dry runs
revisions    versions that were applied, and are kept
changes      what differs between two objects, by path
waiting      until they are ready or gone, with something to look at
packing      manifests into Secrets and out of them
files        manifests in files and directories
offline      what a command without a cluster needs to know of one
"""
