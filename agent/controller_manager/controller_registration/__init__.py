"""What follows from ControllerRegistrations: ControllerInstallations, finalizers, and rights of extensions."""
