"""Addresses of files on servers, and what is asked of them as parts of a path."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from sieva import errors

_PORTS = {"ftp": 21, "gsiftp": 2811}


def is_gridftp(path: str) -> bool:
    """Return whether a path is a URL of such a server."""
    return path.startswith(tuple(f"{scheme}://" for scheme in _PORTS))


@dataclass(frozen=True)
class Address:
    """Where a file is.

    Attributes
    ----------
    scheme
        ``"ftp"`` or ``"gsiftp"``.
    host, port, user, password
        Of the server; no user is the anonymous one.
    path
        Of the file, from the root, not encoded.
    """

    scheme: str
    host: str
    port: int
    user: str | None
    password: str | None
    path: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Take a URL apart.

        Raises
        ------
        InvalidValue
            It has no host or no path, or another scheme.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise errors.InvalidValue(f"{url!r} is no URL: {error}") from error
        if parts.scheme not in _PORTS or not parts.hostname or parts.path in ("", "/"):
            raise errors.InvalidValue(
                f"{url!r} names no file of a GridFTP server",
                "write gsiftp://host[:port]/path/file.nc, or ftp:// for a server without certificates",
            )
        # To a server `?` and `#` are characters of names.
        tail = url[len(parts.scheme) + len("://") + len(parts.netloc) :]
        user = None if parts.username is None else unquote(parts.username)
        password = None if parts.password is None else unquote(parts.password)
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user, password, unquote(tail))

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.rsplit("/", 1)[-1]

    def url(self, question: str = "") -> str:
        """Return the URL of the file, or of the answer to a question of it, as globus-url-copy takes it.

        It decodes once before it sends. What is asked was encoded before, so that the server, which takes
        whatever it is sent for the name of a file, finds no ``//`` and ``..`` in it.
        """
        login = ""
        if self.user is not None:
            secret = "" if self.password is None else f":{quote(self.password, safe='')}"
            login = f"{quote(self.user, safe='')}{secret}@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{login}{host}:{self.port}{quote(self.path)}{quote(question, safe=';=')}"

    def __str__(self) -> str:
        """Return the URL for people: without the password."""
        return Address(self.scheme, self.host, self.port, self.user, None, self.path).url()


def asked(sql: str, kind: str, deflate: int = 0) -> str:
    """Return what stands behind a path to ask for the result of a SELECT, or a condition, in a format.

    What is deflated may come in any order, as it is made: `sieva._gridftp.transfer` puts it where it belongs.
    Over one connection the server sends it from its beginning.
    """
    compressed = f";deflate={deflate};order=any" if deflate else ""
    return f";sql={quote(sql, safe='')};format={kind}{compressed}"


SCHEMA = ";schema"
