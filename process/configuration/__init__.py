"""The configuration file of any program: declared fields, decoding, overrides and validation.

A schema declares every field once, with its type, default, rules and effect, in the words of `fields`; `blocks` has
what the files of all programs have. `decode` and `checks` walk over these declarations, so that a new field needs no
code but its declaration. `component` combines the steps.
"""
