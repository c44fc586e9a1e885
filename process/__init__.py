"""What programs are as processes, whichever they are.

program     what a program is, and how one is run: command line, configuration file, logs
composition what all have: sessions, servers, caches, Events, election; and what is a program's own among them
lifetime    the first moment of a process, and its last
runner      start in order, stop in reverse, signals, grace period, exit code
clusters    by name; some may come and go          controllers  the control loops of a leader
memory      free memory goes back to the system    version      what is reported as version and user agent
logging     one line an entry, zap's keys          server       a small bounded HTTP server
probes      /healthz and /readyz                   metrics      /metrics and /debug/pprof
"""
