"""The status page: what the agent knows of ManagedResources and their objects, as HTML for people.

It changes nothing, and asks no API server anything but for the page of one object (`live.py`). All other pages show
names, states, conditions and paths of fields, but never the value of a field; that page shows values where only this
computer can ask, and of Secrets none. Each page is a document that stands for itself: the script adds ages that go on,
a filter while one types, and refreshing, and everything works without it.
"""
