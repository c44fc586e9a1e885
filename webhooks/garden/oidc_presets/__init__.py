"""OpenIDConnectPresets and ClusterOpenIDConnectPresets: OpenID Connect for new Shoots."""
