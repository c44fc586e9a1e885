"""ControllerInstallations of the own Seed: extensions that are installed, how they are, and whether they are needed."""
