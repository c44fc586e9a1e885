"""Webhooks, a module or a package each, none of which imports another; each ends with its descriptor.

Rules are plain functions from JSON to JSON; `webhooks.state` supplies data of the cluster. The kind and the types of
the fields that a webhook uses are checked first (`rules.shapes`), so that rules can rely on them. `mutation(settings,
state)` combines a rule with its settings; it changes one object in place.
"""
