"""What a garden of definitions can't have as subresources: tokens of WorkloadIdentities, kubeconfigs of Shoots.

Kubernetes has no subresources of one's own for custom resources. So this server is an API server of its own, behind the
garden's: an APIService has the garden's API server pass on what it is asked below one path. It has authenticated the
user then, by whatever means it knows, and names him in headers; that it is the garden's API server itself which asks,
its certificate shows. Who uses this needs nothing but the kubeconfig of the garden that he has anyway, wherever he is.

    front_proxies      which certificates prove that, and the user in the headers
    server             paths, discovery, errors as API servers write them
    identities         a token: who may have it, what it is for
    kubeconfigs        a kubeconfig: who may have it, what it is made of
    claims             what is in it: pure
    issuer             the key that signs, and what others verify with
"""
