"""The status page: what the agent knows of ManagedResources and their objects, as HTML for people.

It asks no API server anything and changes nothing. It tells names, states, conditions and paths of fields, but never
the value of a field. Each page is a document that stands for itself: the script adds ages that go on, a filter while
one types, and refreshing, and everything works without it.
"""
