"""Decide on CertificateSigningRequests, so that only the right machine gets a certificate."""
