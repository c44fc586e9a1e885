"""Rights in the garden: one table of role, kind, verbs and object set.

The seed authorizer, the checks of its admission, their webhook rules and docs/rights.md derive from it. Requests
without a permitting row are denied.
"""
