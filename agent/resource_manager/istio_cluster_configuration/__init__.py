"""Settings of connections in Istio's ingress gateways, derived from DestinationRules."""
