"""Which fields of Istio's configuration change with a cluster: pure."""
