"""Extension controllers of the type `local`.

actuators   actions for each kind: a table
simulation  faults that an object requests, for testing its clients
reconcile   the contract, for all kinds
state       local state
"""
