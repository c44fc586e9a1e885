"""`kubectl mr`: ManagedResources for people, in the manner of Flux and similar tools.

commands/    a module per command: its flags, and what it reads; thin
parameters   the flags that commands share
live         objects as they are in the cluster, and their health
causes       why objects are not healthy
agents       agents according to their Leases
desired      desired objects: out of Secrets, by the rules of the agent
preview      what the agent would do to objects, by dry runs
revisions    versions that were applied, and are kept
changes      differences between two objects, by path
waiting      until they are ready or gone, with progress
packing      manifests into Secrets and out of them
files        manifests in files and directories
offline      replacements for a cluster in commands without one
"""
