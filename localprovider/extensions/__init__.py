"""Extension controllers of the type `local`, built on the library `extension`.

actuators   one class per kind
simulation  faults that an object requests, for testing its clients
state       local state
"""
