"""Webhook configurations that make an API server call this component.

`registrations` is the only table of webhooks and their requests; the combined handler of pods reads it, too. `objects`
builds Kubernetes objects from it, `install` applies them to a cluster, `command` is `python -m webhooks
configurations`.
"""
