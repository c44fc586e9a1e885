"""Summary of a ManagedResource for people: its state, the states of its objects, and advice.

Pure rules, for the status page and the plugin of kubectl.
"""
