"""What a catalog was told of an index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AugmentationInfo:
    """An index of an array, as the catalog was told of it."""

    source: str
    """An absolute path or a URL."""
    array: str
    """Path of the array; of a sorted replica that of the array that it is sorted by."""
    kind: str
    """``"zonemap"``, ``"bitmap"`` or ``"sorted"``."""
    state: str
    """``"current"``; ``"stale"``: built for another state of the source; ``"gone"``: removed."""
    bytes: int
    """Bytes that it takes, or took."""
    data_bytes: int
    """Bytes of the data, decoded; of a sorted replica those of all its columns. 0: not known."""
    at: float
    """When it came into its state, in seconds since 1970."""
    build_seconds: float
    """How long building it took: its share of the build by the size of the array. 0: not known."""
    host: str
    """The machine that told of it."""
    store: str
    """The directory that it is in."""
    version: str
    """The version of the source that it was built for."""
    fingerprint: str
    """Length of the source and a hash of samples of it, as it was built for."""
    unseen: str | None = None
    """Why it could not be looked at, where that was asked for."""

    @property
    def share(self) -> float:
        """Bytes as a part of those of the data; NaN where these are not known."""
        return self.bytes / self.data_bytes if self.data_bytes else float("nan")
