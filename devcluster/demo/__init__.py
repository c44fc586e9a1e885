"""What a newcomer sees first: `python -m devcluster demo`.

A control plane of its own, the CustomResourceDefinition of ManagedResources, the agent, some ManagedResources that
become applied and healthy, and manual changes that are put right before the user's eyes. Then everything stays up to
be looked at, until Ctrl-C.

`story` tells it from top to bottom, `bundles` holds what is applied (the YAML files beside it), `program` runs the
agent as a user would, `screen` is how progress looks.
"""
