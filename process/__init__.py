"""Parts of every program as a process.

program     definition of a program, and its run: command line, configuration file, logs
composition common parts: sessions, servers, caches, Events, election; and a program's own parts among them
lifetime    the first moment of a process, and its last
runner      start in order, stop in reverse, signals, grace period, exit code
clusters    by name; some may come and go          controllers  the control loops of a leader
memory      free memory goes back to the system    version      reported version and user agent
logging     one line per entry, zap's keys         server       a small bounded HTTP server
probes      /healthz and /readyz                   metrics      /metrics and /debug/pprof
"""
