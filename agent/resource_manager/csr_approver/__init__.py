"""Decides on CertificateSigningRequests, so that only the right machine gets a certificate.

request               what a request asks for, parsed so strictly that the signer can't read anything else in it
decisions             approval, denial, or no opinion, and the condition for each
kubelet_serving       rules for the serving certificates of kubelets, compared with the addresses of the Node
client_certificates   rules for the client certificates of node agents and of gardenadm
lookups               reads what the rules need to know of the clusters
reconcile             one request: the decision and the write
"""
