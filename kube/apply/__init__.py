"""Applying sets of objects: what differs is written, what was an owner's and is not desired any more is removed.

kinds           watches of the kinds that some owner has
live_objects    what is known of the live objects, and which of them are as they were accepted
application     one object that is to be as it is desired: create, update, conflicts, refusals
object_sets     `ObjectSets.apply`: all objects of an owner
scaled          replicas of what an autoscaler of the same set scales
shared_objects  labels and annotations of objects that others own as well

In steady state nothing is asked and nothing written. Which label, annotations and field manager mark an object is the
caller's to say. A controller with rules of its own derives from `Application`, and uses the rest as it is.
"""
