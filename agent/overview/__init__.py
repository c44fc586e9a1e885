"""How a ManagedResource fares, summed up for people: its state, that of its objects, and what to do about them.

Rules only, over objects that somebody has read. The status page and the plugin of kubectl tell the same by them.
"""
