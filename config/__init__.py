"""The schemas of configuration files, one package per component, and the reference that documents them.

The package of a component, such as `resource_manager`, declares its fields in the words of `process.configuration`;
`shared` has what some components have in common. `reference` writes the tables of the documentation from them.
"""
