"""ControllerDeployments: how extensions are installed."""
