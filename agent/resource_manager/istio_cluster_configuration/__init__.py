"""Connection settings of Istio's ingress gateways, derived from DestinationRules."""
