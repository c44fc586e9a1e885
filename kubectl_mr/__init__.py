"""`kubectl mr`: ManagedResources for people."""
