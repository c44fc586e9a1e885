"""Configuration file of any program: declared fields, decoding, overrides and validation.

A schema declares every field once, with its type, default, rules and effect, by means of `fields`; `blocks` has the
common parts of all files. `decode` and `checks` walk over these declarations, so that a new field only needs its
declaration. `component` combines the steps.
"""
