"""How much one object may cause: far more than Services of a seed ask for, and little enough to serve all others.

A Service multiplies its ports by the namespaces that it lets in, and most of the policies lie with others. So what it
may ask for is limited before anything is multiplied, and so is the product. The rest of it still counts.
"""

MOST_PORTS = 250
"""Of a Service and its annotations together; that many ports may also be open to the world."""
MOST_SELECTORS = 50
MOST_REQUIREMENTS = 250
"""Labels and expressions of all selectors of a Service."""
MOST_VALUES = 2000
"""In all expressions of a Service, such as names of namespaces."""
MOST_POLICIES = 10_000
"""Of a Service, in all namespaces."""
MOST_GATEWAYS = 50
"""That lead to a Service."""
MOST_WATCHES = 25
"""Of pods of gateways, for the Services of a namespace. Gateways with the same selector share one."""
MOST_NOTES = 20
"""Of one reason, in Events and the log; the last one says how many there are besides."""
WRITES_AT_ONCE = 8
"""For one Service."""
WRITES_BEFORE_OTHERS = 32
"""For one Service, while others wait."""
