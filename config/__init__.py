"""Schemas of configuration files, one package per component, and the reference that documents them.

The package of a component, such as `resource_manager`, declares its fields with `process.configuration`; `shared` has
the common parts. `reference` writes the tables of the documentation from them.
"""
