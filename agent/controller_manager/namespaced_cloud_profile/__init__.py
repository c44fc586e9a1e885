"""Keeps NamespacedCloudProfiles that Shoots refer to, and renders what Shoots choose from into their status."""
