"""The errors: one class per kind, each also the built-in exception that it is a case of.

Every error carries ``kind``, the stable code that all sides of the project share, and ``hint``, what can be
done about it, where there is something::

    SievaError
    ├── FileNotFound (FileNotFoundError)  PermissionDenied, LinkRefused (PermissionError)  IoError (OSError)
    ├── UnknownFormat, CorruptFile, UnknownFunction, SyntaxError_, InvalidValue, DimensionMismatch,
    │   FilterUnavailable (ValueError)
    ├── UnknownArray, UnknownDimension, UnknownAttribute, AmbiguousName (KeyError)
    └── TypeMismatch (TypeError)  Unsupported (NotImplementedError)  MemoryLimit (MemoryError)
        Overflow (OverflowError)  Cancelled, StaleSource, Internal (RuntimeError)
"""

from typing import ClassVar

from sieva._printable import printable


class SievaError(Exception):
    """An error of this package.

    Parameters
    ----------
    message
        What was given, what was expected, and where.
    hint
        What can be done about it.
    """

    kind: ClassVar[str] = "error"
    """Stable kebab-case code."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        message = printable(message, lines=True)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else printable(hint, lines=True)

    def __str__(self) -> str:
        # KeyError and OSError would print something else.
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.hint))


class FileNotFound(SievaError, FileNotFoundError):
    """The named file, directory or object does not exist."""

    kind = "file-not-found"


class PermissionDenied(SievaError, PermissionError):
    """The operating system refused access."""

    kind = "permission-denied"


class UnknownFormat(SievaError, ValueError):
    """The file is not of a format that can be read."""

    kind = "unknown-format"


class CorruptFile(SievaError, ValueError):
    """The bytes contradict the format: damaged, truncated or hostile."""

    kind = "corrupt-file"


class IoError(SievaError, OSError):
    """Reading or writing failed."""

    kind = "io-error"


class UnknownArray(SievaError, KeyError):
    """No array of that name."""

    kind = "unknown-array"


class UnknownDimension(SievaError, KeyError):
    """No dimension of that name."""

    kind = "unknown-dimension"


class UnknownAttribute(SievaError, KeyError):
    """No attribute of that name."""

    kind = "unknown-attribute"


class UnknownFunction(SievaError, ValueError):
    """No function of that name."""

    kind = "unknown-function"


class AmbiguousName(SievaError, KeyError):
    """A bare name that several arrays share."""

    kind = "ambiguous-name"


class SyntaxError_(SievaError, ValueError):  # noqa: N801 - the built-in name is taken
    """The text of the query does not follow the grammar."""

    kind = "syntax-error"


class TypeMismatch(SievaError, TypeError):
    """Operands whose types do not go together."""

    kind = "type-mismatch"


class InvalidValue(SievaError, ValueError):
    """A value outside of what is allowed."""

    kind = "invalid-value"


class DimensionMismatch(SievaError, ValueError):
    """Arrays whose dimensions cannot be lined up."""

    kind = "dimension-mismatch"


class FilterUnavailable(SievaError, ValueError):
    """Data encoded with a filter that is not available."""

    kind = "filter-unavailable"


class Unsupported(SievaError, NotImplementedError):
    """A legal feature that is not supported."""

    kind = "unsupported"


class LinkRefused(SievaError, PermissionError):
    """A link out of the file that is not allowed."""

    kind = "link-refused"


class MemoryLimit(SievaError, MemoryError):
    """The work does not fit into the stated memory limit."""

    kind = "memory-limit"


class Overflow(SievaError, OverflowError):
    """Integer arithmetic left its range."""

    kind = "arithmetic-overflow"


class Cancelled(SievaError, RuntimeError):
    """Interrupted by the caller."""

    kind = "cancelled"


class StaleSource(SievaError, RuntimeError):
    """The source was changed since it was opened."""

    kind = "stale-source"


class NoIndex(SievaError, LookupError):
    """No augmentation of the kind that the forced access needs."""

    kind = "no-index"


class CorruptIndex(SievaError, ValueError):
    """A damaged augmentation; answers do not depend on it."""

    kind = "corrupt-index"


class Internal(SievaError, RuntimeError):
    """A broken invariant of this package: a bug."""

    kind = "internal-error"


class UnalignedDimensions(SievaError, ValueError):
    """Arrays of a query that do not line up: their product was not asked for."""

    kind = "unaligned-dimensions"


_BY_KIND: dict[str, type[SievaError]] = {cls.kind: cls for cls in SievaError.__subclasses__()}


def make(kind: str, message: str, hint: str | None = None) -> SievaError:
    """Return the error of a kind; the native module makes its errors by this.

    Parameters
    ----------
    kind
        The stable code, such as ``"unknown-array"``.
    message, hint
        See `SievaError`.

    Returns
    -------
    SievaError
        Of the class of that kind; a plain `SievaError` where the code is not known.
    """
    return _BY_KIND.get(kind, SievaError)(message, hint)
