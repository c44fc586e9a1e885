"""The webhook configurations that make an API server ask this component.

`registrations` is the one table of who is asked about what; the combined handler of pods reads it too. `objects` makes
Kubernetes objects of it, `install` brings them into a cluster, `command` is `python -m webhooks configurations`.
"""
