"""The distribution in which all programs are installed, and its version."""

from process.version import installed_version

DISTRIBUTION = "gardener-resource-manager-python"


def version() -> str:
    """Version of the distribution, such as `v1.2.3`."""
    return installed_version(DISTRIBUTION)
