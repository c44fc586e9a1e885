"""A client that queries the webhook server again and again, each time over a new connection, until its input ends.

    python -m tests.attacks.innocent PORT

Then it prints the longest time that a request took, how many there were, and how many failed.
"""

import json
import select
import socket
import ssl
import sys
import time

from kit.processes.webhooks import HOST, POD_REVIEW, SECCOMP, trusting

_SECONDS = 60.0
_PAUSE = 0.05


def main(port: int) -> None:
    header = (
        f"POST {SECCOMP} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(POD_REVIEW)}"
    )
    longest, count, failures = 0.0, 0, 0
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        begin = time.monotonic()
        count += 1
        try:
            with (
                socket.create_connection((HOST, port), timeout=_SECONDS) as plain,
                trusting().wrap_socket(plain) as secured,
            ):
                secured.sendall(f"{header}\r\n\r\n".encode() + POD_REVIEW)
                failures += not secured.recv(4096).startswith(b"HTTP/1.1 200")
        except (OSError, ssl.SSLError):
            failures += 1
        longest = max(longest, time.monotonic() - begin)
    print(json.dumps([longest, count, failures]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
