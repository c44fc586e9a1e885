"""WorkloadIdentities: credentials that are issued as tokens."""
