"""The status page: what the agent knows of ManagedResources and their objects, as HTML for people.

    knowledge   what can be told, from the memory of caches and control loops
    listing     which ManagedResources a query asks for, in which order: rules only
    pages       what is shown on each
    rendering   from that to HTML, with the files in `templates` and `static`
    server      paths, headers, and who may ask

It asks no API server anything and changes nothing. It tells names, states, conditions and paths of fields, but never
the value of a field. Each page is a document that stands for itself: the script adds ages that go on, a filter while
one types, and refreshing, and everything works without it.
"""
