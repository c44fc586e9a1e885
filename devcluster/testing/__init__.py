"""Tools for tests with a cluster: a proxy with faults (`proxy`, `faults`) and fixtures for pytest (`pytest_plugin`)."""
