"""A bulk TCP transfer of zeros, which shows what a line carries.

Usage: bulk.py serve ADDRESS PORT SECONDS
       bulk.py fetch ADDRESS PORT SKIPPED_SECONDS    prints the bytes per second after the start was skipped
"""

import socket
import sys
import time

BLOCK = bytes(1 << 20)


def serve(address: str, port: int, seconds: float) -> None:
    """Send zeros to the one that connects first, for a while."""
    with socket.create_server((address, port)) as listener:
        print("ready", flush=True)
        connection, _ = listener.accept()
        with connection:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                connection.sendall(BLOCK)


def fetch(address: str, port: int, skipped: float) -> float:
    """Return the bytes per second that arrive once the start is over."""
    buffer = bytearray(1 << 20)
    with socket.create_connection((address, port)) as connection:
        begun = time.monotonic()
        counted_from, counted = 0.0, 0
        last = begun
        while got := connection.recv_into(buffer):
            last = time.monotonic()
            if counted_from:
                counted += got
            elif last - begun > skipped:
                counted_from = last
    return counted / (last - counted_from)


if __name__ == "__main__":
    what, where, number, span = sys.argv[1:]
    if what == "serve":
        serve(where, int(number), float(span))
    else:
        print(fetch(where, int(number), float(span)))
