"""What all Gardener programs agree on: names, kinds and rules.

Functions from values to values: nothing here knows a client, waits, or reads a clock.
"""
