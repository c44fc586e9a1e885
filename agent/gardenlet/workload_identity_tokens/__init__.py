"""Tokens of WorkloadIdentities, requested in the garden, and kept in Secrets of the seed for what talks to clouds.

All state is in the Secret: what is wanted (annotations), the token, and when it is to be renewed (an annotation). Other
data of the Secret are somebody else's. A token is renewed after half of its life, so that an outage of the garden may
take as long as the other half.
"""
