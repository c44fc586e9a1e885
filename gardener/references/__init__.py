"""What protects ConfigMaps and Secrets from the garbage collector, and help for those who write manifests.

The collector deletes an object that carries the label of `keys` as soon as no annotation refers to it any more. Such an
object is immutable and has the hash of its content in its name: new content is a new object, pods that run keep the old
one, and the old one goes when the last of them has gone.

`python -m agent.references FILE...` does it on the command line.
"""
