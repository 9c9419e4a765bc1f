"""Files on GridFTP servers with the plug-in of sieva: the query runs there, its result comes here.

`address` has URLs and what is asked of them, `transfer` brings bytes, `source` and `query` are what
`sieva.open` returns for ``gsiftp://`` and ``ftp://``, `get` is behind ``sieva get``.
"""

from sieva._gridftp.address import is_gridftp

__all__ = ["is_gridftp"]
