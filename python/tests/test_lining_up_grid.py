"""How arrays line up in every combination of names given or not, growing or not, nested or not.

The rule of docs/design/010-lining-up.md is written here a second time, by trying all ways; numpy answers.
"""

import itertools

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from sieva import errors


class File:
    """An HDF5 file, and what of its axes the file itself names."""

    def __init__(self, path):
        self.path, self.values, self.axes = path, {}, {}

    def add(self, f, path, shape, scales=(), *, grows=False, is_scale=False):
        """Write an array of drawn values; a scale is attached to each axis that ``scales`` names one for."""
        values = np.random.default_rng(len(self.values)).normal(size=shape)
        d = f.create_dataset(path, data=values, maxshape=(None,) * len(shape) if grows else None)
        if is_scale:
            d.make_scale()
            scales = [path]
        for k, scale in enumerate(scales):
            if scale and not is_scale:
                d.dims[k].attach_scale(f[scale])
        self.values[path] = values
        self.axes[path] = [(n, dict(enumerate(scales)).get(k)) for k, n in enumerate(shape)]


def ways_of(axes, items):
    """Return each way to take the axes of one array for the dimensions of all ``items``."""
    ways = [()]
    for length in {n for n, _ in axes}:
        lists = [[name for n, name in item if n == length] for item in items]
        named = list(dict.fromkeys(name for names in lists for name in names if name))
        slots = named + [f"?{length}.{i}" for i in range(max(map(len, lists)) - len(named))]
        own = [name for n, name in axes if n == length]
        free = [s for s in slots if s not in own]
        fills = list(itertools.permutations(free, own.count(None)))
        # An array that has all: in the order of one that has all names, if others have no other.
        whole = next((names for names in lists if len(named) == len(names) == len(set(names) - {None})), None)
        in_order = whole and all([d for d in whole if d in names] == names for names in lists if all(names))
        anonymous = [s for s in free if s not in named]
        if len(free) == own.count(None) and anonymous == free:
            fills = [tuple(free)]
        elif len(free) == own.count(None) and in_order and not anonymous:
            fills = [tuple(d for d in whole if d not in own)]
        ways = [(*way, (length, fill)) for way in ways for fill in fills]
    return [named_by(axes, dict(way)) for way in ways]


def named_by(axes, fills):
    """Return the names of axes, those that are missing from ``fills`` of their length in order."""
    fills = {n: iter(fill) for n, fill in fills.items()}
    return tuple(name or next(fills[n]) for n, name in axes)


def expected(file, arrays):
    """Return lengths of the rows and the hits of ``array > 0 AND ...``; nothing where it is an error."""
    items = [file.axes[a] for a in arrays]
    ways = [ways_of(axes, items) for axes in items]
    if any(len(way) != 1 for way in ways):
        return None
    dims = [way[0] for way in ways]
    lengths = {
        d: n for axes, own in zip(items, dims, strict=True) for (n, _), d in zip(axes, own, strict=True)
    }
    for a, b in itertools.combinations(lengths, 2):
        if "?" in a + b and not any(a in own and b in own for own in dims):
            return None
    given = [[name for _, name in axes] for axes in file.axes.values()]
    whole, grown = {next(iter(lengths))}, True
    while grown:
        near = [own for own in [*dims, *given] if whole & set(own)]
        more = {d for own in near for d in own if d in lengths} - whole
        whole, grown = whole | more, bool(more)
    if whole != set(lengths):
        return None
    hits = np.ones(tuple(lengths.values()), bool)
    for a, own in zip(arrays, dims, strict=True):
        letters = {d: chr(97 + i) for i, d in enumerate(lengths)}
        source, target = "".join(letters[d] for d in own), "".join(letters[d] for d in lengths if d in own)
        spread = np.einsum(f"{source}->{target}", file.values[a])
        hits &= spread.reshape([n if d in own else 1 for d, n in lengths.items()]) > 0
    return sorted(lengths.values()), int(hits.sum())


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("group", ["", "inner/"])
@pytest.mark.parametrize("attached", [(), ("lat",), ("lat", "lon")])
@pytest.mark.parametrize("lengths", [(9, 4), (6, 6)])
def test_every_combination_of_names(tmp_path, lengths, attached, group, grows):
    file = File(tmp_path / "a.h5")
    with h5py.File(file.path, "w") as f:
        for scale, n in zip(("lat", "lon"), lengths, strict=True):
            file.add(f, scale, (n,), is_scale=True, grows=grows)
        file.add(f, "given", lengths, attached)
        file.add(f, f"{group}bare", lengths, grows=not grows)
        file.add(f, f"{group}a", lengths[:1])
        file.add(f, "b", lengths[1:], grows=True)
        file.add(f, f"{group}both", lengths[:1], ["lat"])
        file.add(f, "third", (lengths[0],), is_scale=True)
    source = sieva.open(file.path)
    answered = 0
    for n in (1, 2, 3):
        for arrays in itertools.permutations(file.values, n):
            condition = " AND ".join(f'"{a}" > 0' for a in arrays)
            wanted = expected(file, arrays)
            if wanted is None:
                with pytest.raises(errors.UnalignedDimensions):
                    source.query(condition)
                continue
            query = source.query(condition)
            assert (sorted(query.rows.values()), query.count()) == wanted, condition
            answered += 1
    assert answered > 50


def test_a_length_of_the_group_is_no_name(tmp_path):
    """Two arrays as long as two scales of their group are no grid; the error says how to make them one."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for scale, n in (("lat", 9), ("lon", 4)):
            f[scale] = np.arange(float(n))
            f[scale].make_scale()
        f["t"] = np.arange(36.0).reshape(9, 4)
        f["t"].dims[0].attach_scale(f["lat"])
        f["t"].dims[1].attach_scale(f["lon"])
        f["a"], f["b"], f["g/c"] = np.arange(9), np.arange(4), np.arange(9)
    source = sieva.open(tmp_path / "a.h5")
    assert source["a"].dims == ("phony_dim_3",)
    with pytest.raises(errors.UnalignedDimensions) as caught:
        source.query("a > 2 AND b > 2")
    hint = 'if they run along lat and lon, say so by dims={"a": ["lat"], "b": ["lon"]}'
    assert hint in caught.value.hint
    named = sieva.open(tmp_path / "a.h5", dims={"a": ["lat"], "b": ["lon"]})
    assert named.query("a > 2 AND b > 2").rows == {"lat": 9, "lon": 4}
    # Across groups and within them, what has one length is one.
    assert source.query("a > 2 AND c > 2").rows == {"phony_dim_2": 9}
    assert source.query("t > 2 AND a > 2 AND b > 2").rows == {"lat": 9, "lon": 4}


def test_netcdf_dimensions_of_two_files_are_told_apart(tmp_path):
    """Each netCDF-4 file numbers its dimensions from 0: those of a file behind a link are others."""
    for name, length in (("one", "x"), ("two", "y")):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as f:
            f.createDimension(length, 5)
            f.createDimension("k", 2)
            # Only variables of several dimensions have their numbers noted.
            f.createVariable(length, "f8", (length, "k"))[:] = 1
    with h5py.File(tmp_path / "one.nc", "a") as f:
        f["other"] = h5py.ExternalLink("two.nc", "/")
    source = sieva.open(tmp_path / "one.nc", external=[tmp_path])
    assert source["x"].dims == ("x", "k")
    with pytest.raises(errors.UnalignedDimensions):
        source.query("x > 0 AND y > 0")
