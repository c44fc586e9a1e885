"""ControllerInstallations of the own Seed: installation, health, and whether they are required."""
