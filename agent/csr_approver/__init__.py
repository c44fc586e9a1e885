"""Decides on CertificateSigningRequests, so that only the right machine gets a certificate.

request               what a request asks for, parsed so strictly that the signer can't read anything else in it
decisions             approval, denial, or no opinion, and how each is told
addresses             what a Node may be called, compared with what a request asks for
kubelet_serving       rules for the serving certificates of kubelets
client_certificates   rules for the client certificates of node agents and of gardenadm
facts                 reads what the rules need to know of the cluster
reconcile             one request: the decision and the write
"""
