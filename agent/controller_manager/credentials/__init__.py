"""Labels of Secrets and WorkloadIdentities that bindings refer to, and the finalizer that keeps them."""
