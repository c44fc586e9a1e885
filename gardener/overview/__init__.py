"""The state of a ManagedResource, summed up for people: its own, that of its objects, and what to do about them.

Pure rules, for the status page and the plugin of kubectl.
"""
