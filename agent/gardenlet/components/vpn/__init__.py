"""The tunnel between the control plane of a Shoot and its nodes: pure.

server  in the seed: where the tunnel ends, and a proxy beside it, to which the API server hands what is for the cluster
proxy   how that proxy is configured
client  in the Shoot: it comes to the server, through the ingress gateway, so nodes need no address of their own
"""
