"""Pure rules: policies for Services and Namespaces."""
