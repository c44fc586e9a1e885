"""Projects: owner, members and tolerations of a namespace."""
