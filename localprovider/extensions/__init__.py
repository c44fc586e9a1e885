"""Extension controllers of the type `local`.

actuators   what is done for each kind: a table
simulation  faults that an object asks for, so that who waits for it can be tested
reconcile   the contract, for all kinds
state       what is kept on this computer
"""
