"""Library for extensions of Gardener: one class per kind, and a program that answers for its objects in a seed.

actuators       base classes, one per kind: what an extension implements
errors          what an actuator raises if an operation waits, or fails with codes
rules           the contract, pure: the operation that an object requests, and the time of an answer
reconcile       the contract: finalizer, annotation, status, retries
health          conditions of extension objects
heartbeat       the Lease by which the gardenlet sees that the conditions are maintained
controller      control loops from an actuator
objects         objects in the seed, and in the cluster of a Shoot by a ManagedResource
configuration   the configuration file
program         the process: command line, election, metrics, probes

It builds on `kube` and `process`, uses the rules in `gardener`, and has its own wheel; see docs/extension-kit.md.
"""

__version__ = "0.1.0"
"""Semantic version of the library."""
