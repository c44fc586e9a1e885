"""NetworkPolicies for Services: a client pod needs nothing but a label to be let through."""
