"""Subresources that a garden of CRDs cannot have: tokens of WorkloadIdentities, kubeconfigs of Shoots.

Kubernetes has no custom subresources for custom resources. So this server is an API server of its own, behind the
garden's: an APIService makes the garden's API server forward requests below one path. By then it has authenticated the
user, by any of its methods, and names them in headers; its certificate proves that it is the garden's API server. Users
need only their kubeconfig of the garden, from anywhere.

  front_proxies      certificates that prove that, and the user in the headers
  server             paths, discovery, errors as API servers write them
  identities         a token: rights to it, and its context
  kubeconfigs        a kubeconfig: rights to it, and its parts
  claims             content of a token: pure
  issuer             the signing key, and the keys for verification
"""
