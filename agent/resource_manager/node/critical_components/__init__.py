"""The controller `node-critical-components`.

A new Node has a taint that keeps ordinary pods away. It is removed as soon as all critical components of the Node are
ready there: networking, storage drivers and the like.
"""
