"""Which policies Services and Namespaces ask for: pure."""
