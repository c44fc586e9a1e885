"""What a newcomer sees first: `python -m devcluster demo`.

A control plane of its own, the CustomResourceDefinition of ManagedResources, the agent, some ManagedResources that
become applied and healthy, and manual changes that are put right before the user's eyes. Then the webhooks: they fill
in what a Deployment leaves open, and keep a definition from being deleted by mistake. At the end everything stays up to
be looked at, until Ctrl-C.

`story` tells it from top to bottom, `bundles` and `admission` hold what is applied (the YAML files beside them),
`program` runs agent and webhooks as a user would, the agent as whom `identity` says, `screen` is how progress looks.
"""
