"""Apply sets of objects: write those that differ, remove those of an owner that are no longer desired.

kinds           watches of the kinds that some owner has
live_objects    observed state of the live objects, and whether it is still the accepted one
application     write one object: create, update, conflicts, refusals
object_sets     `ObjectSets.apply`: all objects of an owner
scaled          replicas of targets of an autoscaler in the same set
shared_objects  labels and annotations of objects that have other owners as well

In steady state there are neither reads nor writes. The caller chooses the label, the annotations and the field manager
that mark an object. A controller with rules of its own derives from `Application` and reuses the rest.
"""
