"""Variables of BP files as arrays: their types, their dimensions, and which of them are none."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sieva._foreign import Dim

_DTYPES = {
    "int8_t": "int8",
    "char": "int8",
    "uint8_t": "uint8",
    "int16_t": "int16",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "float": "float32",
    "double": "float64",
    "string": "str",
}
_NOT_READ = {
    "float complex": "is of complex numbers, which have no order",
    "double complex": "is of complex numbers, which have no order",
    "long double": "is of long doubles, which no type here holds",
}
STEP = "step"
"""The name of the dimension that steps make."""


class Variable:
    """A variable: what of it is the same in all steps, or why that is not."""

    def __init__(self, path: str, name: str, found: Any, all_steps: int) -> None:  # noqa: ANN401 - adios2's
        self.path, self.name = path, name
        self.type = str(found.type())
        self.dtype = _DTYPES.get(self.type, "")
        self.steps = int(found.steps())
        self.shape = tuple(int(n) for n in found.shape())
        self.lead: tuple[str, ...] = ()
        self._kind = str(found.shape_id()).rpartition(".")[2]
        self._all_steps = all_steps
        self._shapes = (
            [tuple(int(n) for n in found.shape(step)) for step in range(self.steps)]
            if self._kind == "GlobalArray" and self.steps > 1
            else []
        )

    def fault(self) -> str | None:
        """Return why it cannot be read as one array."""
        if not self.dtype:
            return _NOT_READ.get(self.type, f"is of type '{self.type}', which has no plain values")
        if self._kind in {"LocalArray", "LocalValue", "Unknown"} or (
            self._kind != "GlobalValue" and not self.shape
        ):
            return f"is a {self._kind}: its blocks have no places in one array"
        if self.steps < 1:
            return "is in no step"
        changed = next((k for k, shape in enumerate(self._shapes) if shape != self._shapes[0]), None)
        if changed is not None:
            first, other = self._shapes[0], self._shapes[changed]
            return f"has shape {first} in its first step and {other} in step {changed}: it is no one array"
        return None

    def name_dims(self, dims: dict[str, Dim]) -> list[str]:
        """Return its dimensions, and add those that are new.

        BP names none but steps: arrays of one group share dimensions by length, an array's own of one length
        are told apart by their order. Arrays that are not in every step have steps of their own.
        """
        if self.steps > 1:
            self.lead = (STEP if self.steps == self._all_steps else f"{self.path}.{STEP}",)
        names = list(self.lead)
        for name in names:
            dims.setdefault(name, Dim(path=name, length=self.steps, unlimited=True, named=True))
        group = self.path.rpartition("/")[0]
        prefix = f"{group}/" if group else ""
        seen: Counter[int] = Counter()
        for length in self.shape:
            seen[length] += 1
            twin = "" if seen[length] == 1 else f"_{seen[length] - 1}"
            name = f"{prefix}dim_{length}{twin}"
            dims.setdefault(name, Dim(path=name, length=length, unlimited=False, named=False))
            names.append(name)
        return names
