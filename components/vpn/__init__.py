"""The tunnel between the control plane of a Shoot and its nodes: pure.

server  in the seed: the end of the tunnel, and a proxy that receives the API server's requests to the cluster
client  in the Shoot: connects to the server through the ingress gateway, so nodes need no address of their own
"""
