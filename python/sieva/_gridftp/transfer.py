"""Bringing a file from a server: by globus-url-copy, or plain FTP where that is enough."""

from __future__ import annotations

import contextlib
import ftplib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from sieva import errors
from sieva._gridftp.address import Address

Told: TypeAlias = Callable[[int], None]

PROGRAM = "globus-url-copy"
_BLOCK = 1 << 18
_TIMEOUT = 60
_POLL = 0.05


def download(
    address: Address, question: str, target: Path, *, streams: int = 1, told: Told | None = None
) -> None:
    """Write a file of a server, or the answer to a question of it, to ``target``.

    Parameters
    ----------
    address, question
        The file, and what stands behind its path (`address.asked`); empty is the file itself.
    target
        Is written from its beginning; removing what is left of a failure is up to the caller.
    streams
        Connections that carry data. One alone of ``ftp://`` needs no program.
    told
        Is called with the bytes that are there, now and then; an exception that it raises ends the transfer.

    Raises
    ------
    SievaError
        What the server says, as its kind where it is one of ours; Unsupported where globus-url-copy is
        needed and not installed.
    """
    program = shutil.which(PROGRAM)
    if program is not None and (streams > 1 or address.scheme == "gsiftp"):
        _by_program(program, address, question, target, streams=streams, told=told)
    elif address.scheme == "gsiftp":
        raise errors.Unsupported(
            f"'{address}': gsiftp:// needs {PROGRAM}, which is not installed",
            "on Debian: apt-get install globus-gass-copy-progs",
        )
    else:
        _by_ftp(address, question, target, told)


def _by_program(
    program: str, address: Address, question: str, target: Path, *, streams: int, told: Told | None
) -> None:
    with tempfile.TemporaryDirectory(prefix="sieva-") as folder:
        # Others see the arguments of a program, and their length is limited.
        pairs = Path(folder, "transfers")
        pairs.touch(mode=0o600)
        pairs.write_text(f"{address.url(question)} {target.absolute().as_uri()}\n", encoding="utf-8")
        words = Path(folder, "words")
        parallel = ["-p", str(streams)] if streams > 1 else []
        with words.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 - the program that was found, and a file of ours
                [program, *parallel, "-f", str(pairs)], stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:
            while process.poll() is None:
                if told is not None and target.exists():
                    # Streams write wherever their blocks belong: the length says little.
                    told(target.stat().st_blocks * 512)
                time.sleep(_POLL)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise _error(words.read_text(encoding="utf-8", errors="replace"), address)


def _by_ftp(address: Address, question: str, target: Path, told: Told | None) -> None:
    done = 0
    try:
        with ftplib.FTP(timeout=_TIMEOUT) as server:  # noqa: S321 - the server's protocol
            server.connect(address.host, address.port)
            server.login(address.user or "", address.password or "")
            with target.open("wb") as out:

                def take(block: bytes) -> None:
                    nonlocal done
                    out.write(block)
                    done += len(block)
                    if told is not None:
                        told(done)

                server.retrbinary(f"RETR {address.path}{question}", take, _BLOCK)
    except ftplib.Error as error:
        raise _error(str(error), address) from error
    except (EOFError, TimeoutError, ConnectionError) as error:
        reason = str(error) or "it closed the connection"
        raise errors.IoError(f"'{address}': the server does not answer: {reason}") from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise errors.IoError(f"'{address}': cannot reach the server: {error.strerror or error}") from error


_OURS = re.compile(rf"\b({'|'.join(re.escape(kind) for kind in errors._BY_KIND)}): ([^\r\n]+)")
_REPLY = re.compile(r"^([45]\d\d)[ -](.*)$", re.MULTILINE)


def _error(words: str, address: Address) -> Exception:
    """Return what a server or the program says as an error."""
    if found := _OURS.search(words):
        message, _, hint = found[2].strip().partition("; hint: ")
        return errors.make(found[1], f"'{address}': {message}", hint or None)
    replies = [text.strip() for _, text in _REPLY.findall(words)]
    codes = [code for code, _ in _REPLY.findall(words)]
    said = " ".join(dict.fromkeys(text for text in replies if text)) or words.strip() or "no reason was given"
    with contextlib.suppress(ValueError):
        said = said[: said.index(" 500 End.")]
    if codes and codes[0].startswith("53"):
        return errors.PermissionDenied(f"'{address}': the server refuses the user: {said}")
    if "No such file" in said or "not found" in said:
        return errors.FileNotFound(
            f"'{address}': the server has no such file: {said}",
            "where the file is there, the server lacks the plug-in: see the guide on GridFTP",
        )
    if "ermission denied" in said:
        return errors.PermissionDenied(f"'{address}': {said}")
    return errors.IoError(f"'{address}': {said}")
