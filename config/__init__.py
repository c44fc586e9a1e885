"""The configuration file that all programs share: its schema, decoding, overrides, validation and reference.

`schema` declares every field once, with its type, default, rules and effect, in the words of `fields`.
`decode`, `validation` and `reference` walk over these declarations, so that a new field needs no code but
its declaration. `load` puts the steps together.
"""
