"""Secrets of a control plane, as pure functions: contents, names and labels, rotation. `tables` has the configs."""
