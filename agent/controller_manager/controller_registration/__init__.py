"""Consequences of ControllerRegistrations: ControllerInstallations, finalizers, and rights of extensions."""
