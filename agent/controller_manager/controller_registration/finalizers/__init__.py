"""Keeps ControllerRegistrations and Seeds as long as they have ControllerInstallations."""
