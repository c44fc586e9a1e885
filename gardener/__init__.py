"""Names, kinds and rules that all Gardener programs share.

Pure functions: nothing here uses a client, waits, or reads a clock.
"""
