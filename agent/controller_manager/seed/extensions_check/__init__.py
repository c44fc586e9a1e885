"""The condition ExtensionsReady of Seeds says how their ControllerInstallations are."""
