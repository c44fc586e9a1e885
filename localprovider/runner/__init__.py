"""Local processes for objects of Shoots in the seed: a way of running pods on a laptop.

Etcds and the Deployments of a control plane run from their manifests: files of Secrets and ConfigMaps are below a
directory that stands for the root of the container, and paths, ports and names of Services are replaced in arguments
and files. Deployments of other programs are reported as ready, since their work is not needed here.

volumes     files of a pod
commands    local command line of each program
addresses   local replacements for Services and paths of pods
places      directories and ports, which outlive the process
processes   start, stop, and state
probes      readiness
deployments, etcds, services, namespaces   one pass over such an object

A separate supervisor holds the processes. So they outlive a crash of this program, which takes them over again, and end
with it when it stops, or when its parent does.
"""
