"""ControllerInstallations: extensions in Seeds."""
