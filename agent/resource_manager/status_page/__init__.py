"""Status page: the agent's state of ManagedResources and their objects, as HTML for users.

It changes nothing, and only the page of one object sends requests to an API server (`object_page`). All other pages
show names, states, conditions and paths of fields, but never the value of a field; that page shows values if only local
clients have access, but none of Secrets. Each page is a complete document: the script adds running ages, a filter while
typing, and refreshing, and everything works without it.
"""
