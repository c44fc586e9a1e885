"""Namespace of a Project, its ResourceQuota and the rights of members; and their removal with the Project."""
