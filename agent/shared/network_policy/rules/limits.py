"""Limits of the effects of one object: far more than Services of a seed need, and little enough to serve all others.

A Service multiplies its ports by the namespaces that it lets in, and most of the policies lie with others. So its
settings are limited before anything is multiplied, and so is the product. The rest of them still counts.
"""

MOST_PORTS = 250
"""Ports of a Service and its annotations together; that many ports may also be open to the world."""
MOST_SELECTORS = 50
MOST_REQUIREMENTS = 250
"""Labels and expressions of all selectors of a Service."""
MOST_VALUES = 2000
"""Values in all expressions of a Service, such as names of namespaces."""
MOST_POLICIES = 10_000
"""Policies of a Service, in all namespaces."""
MOST_GATEWAYS = 50
"""Gateways that lead to a Service."""
MOST_WATCHES = 25
"""Watches of pods of gateways, for the Services of a namespace. Gateways with the same selector share one."""
MOST_NOTES = 20
"""Notes with one reason, in Events and the log; the last one reports that there are more."""
WRITES_AT_ONCE = 8
"""Concurrent writes for one Service."""
WRITES_BEFORE_OTHERS = 32
"""Writes for one Service, while others wait."""
