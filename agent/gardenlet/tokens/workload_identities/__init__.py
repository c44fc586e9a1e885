"""Tokens of WorkloadIdentities, requested in the garden, and stored in Secrets of the seed for clients of clouds.

All state is in the Secret: the request (annotations), the token, and the time of its renewal (an annotation). Other
data of the Secret have other owners. A token is renewed after half of its lifetime, so that an outage of the garden may
take as long as the other half.
"""
