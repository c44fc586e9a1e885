"""Pure functions: objects and configuration of an installed gardenlet."""
