"""The webhooks that change objects, a module each.

Every module has the same face: `NAME`, `PATH`, `mutation(settings, facts)`, which changes one object in place, and
`handler(settings, facts)`, which answers requests with it. Rules are plain functions from JSON to JSON; what they have
to know about the cluster comes from `webhooks.facts`. The kind and the types of the fields that a webhook touches are
checked first (`webhooks.shapes`), so that rules need not doubt them.
"""
