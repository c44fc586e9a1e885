"""Demo for newcomers: `python -m devcluster demo`.

A control plane of its own, the CustomResourceDefinition of ManagedResources, the agent, some ManagedResources that
become applied and healthy, and manual changes that are repaired before the user's eyes. Then the plugin of kubectl,
with which one is suspended, changed, compared and resumed, and the webhooks: they complete a Deployment, and keep a
definition from being deleted by mistake. At the end everything stays up for inspection, with the status page, until
Ctrl-C.

`resource_manager` runs it from top to bottom, `bundles` and `admission` hold the applied objects (the YAML files next
to them). `garden` is another demo, of the garden API: `python -m devcluster demo --garden`. Both use `stage`, and
`screen` shows progress.
"""
