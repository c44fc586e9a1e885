"""NetworkPolicies for Services: a client pod only needs a label to be let through."""
