"""The configuration file of a program: its schema, decoding, overrides, validation and reference, for any program.

The package of a component, such as `resource_manager`, declares every field once, with its type, default, rules and
effect, in the words of `fields`; `blocks` has what the files of all components have, `shared` what some of them have.
`decode`, `validation` and `reference` walk over these declarations, so that a new field needs no code but its
declaration. `component` puts the steps together.
"""
