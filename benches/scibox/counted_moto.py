"""moto's S3 with a log: method, path, status, bytes received and sent, a line for each request.

Usage: counted_moto.py PORT, with the interpreter that has moto. The log is what it prints.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

Environment = dict[str, Any]


class Counted:
    """An application whose requests are told.

    Parameters
    ----------
    application
        What answers.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> Iterator[bytes]:
        """Answer a request, and print what it moved."""
        status = "0"

        def start(line: str, headers: list[tuple[str, str]], error: Any = None) -> Any:  # noqa: ANN401 - WSGI's
            nonlocal status
            status = line.split(" ", 1)[0]
            return start_response(line, headers, error)

        received = int(environ.get("CONTENT_LENGTH") or 0)
        sent = 0
        answer = self._application(environ, start)
        try:
            for part in answer:
                sent += len(part)
                yield part
        finally:
            if hasattr(answer, "close"):
                answer.close()
            path = quote(environ["PATH_INFO"])
            # One write, as threads tell at the same time.
            sys.stdout.write(f"counted: {environ['REQUEST_METHOD']} {path} {status} {received} {sent}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    served = Counted(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), served, threaded=True)
