"""NamespacedCloudProfiles: what a project changes and adds in a CloudProfile."""
