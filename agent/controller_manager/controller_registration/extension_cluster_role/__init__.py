"""ServiceAccounts of extensions in the namespaces of Seeds get the rights that labelled ClusterRoles grant."""
