"""Each Seed has a ControllerInstallation for each ControllerRegistration that it needs."""
