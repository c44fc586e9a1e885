"""NetworkPolicies of the seed's namespaces: nothing is allowed but what pods ask for by labels."""
