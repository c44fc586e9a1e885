"""NetworkPolicies of the seed's namespaces: only traffic that pods request by labels is allowed."""
