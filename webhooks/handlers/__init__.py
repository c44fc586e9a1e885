"""The webhooks, a module or a package each, none of which imports another; each ends with its descriptor.

Rules are plain functions from JSON to JSON; what they have to know about the cluster comes from `webhooks.state`. The
kind and the types of the fields that a webhook touches are checked first (`rules.shapes`), so that rules need not
doubt them. `mutation(settings, state)` puts a rule and its settings together; it changes one object in place.
"""
