"""Keeps ControllerDeployments that ControllerRegistrations refer to."""
