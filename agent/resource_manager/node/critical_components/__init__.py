"""The controller `node-critical-components`.

A new Node has a taint that keeps ordinary pods away. It goes as soon as all components that are critical for the Node
are ready there: networking, storage drivers and the like.
"""
