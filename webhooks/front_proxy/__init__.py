"""Front proxy of a garden's API server: serves the subresources that CustomResourceDefinitions cannot have.

Clients of Gardener's own API server (dashboard, gardenlogin, gardenctl) call subresources such as
`shoots/adminkubeconfig`. No API server adds subresources to a CustomResourceDefinition, and an APIService claims a
whole group and version, so a proxy in front of the API server changes the path of these few requests. It changes no
body and no response: `rules` change the head of a request, everything else is copied as it arrives, so that watches,
uploads and flow control work as without it.

The proxy authorizes nothing and has no rights: every request reaches the API server with its client's own
identity. Tokens pass through. A client certificate ends at the proxy's TLS; the API server gets its user in the headers
of a front proxy, by a certificate that it trusts for this purpose. Connections of other clients are passed on without
that certificate, so that the API server ignores such headers of theirs; they are removed nevertheless.

Each client connection has its own connection to the API server, with the same version of HTTP: identities never share a
connection, and the API server's own limits for streams, bodies and idle connections apply.
"""
