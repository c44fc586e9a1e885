"""Which requests for certificates are approved: pure."""
