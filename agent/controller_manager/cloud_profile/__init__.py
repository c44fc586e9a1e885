"""Keeps CloudProfiles that NamespacedCloudProfiles or Shoots refer to."""
