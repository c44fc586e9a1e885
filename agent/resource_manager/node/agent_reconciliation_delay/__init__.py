"""The controller `node-agent-reconciliation-delay`.

Node agents act on a new configuration after a delay that an annotation of their Node states. The delays are spread
evenly, so that the agents of a cluster don't all restart the same thing at once.
"""
