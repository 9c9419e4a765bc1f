"""How arrays of a query line up: by names, conventions, length, or not at all. Numpy gives the answers."""

import itertools
import json
import shutil
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from sieva import errors

SEED = 12


def values(*shape):
    return np.random.default_rng(SEED + sum(shape)).normal(size=shape)


def write(path, arrays, attrs=None):
    with h5py.File(path, "w") as f:
        for name, data in arrays.items():
            f[name] = data
        for name, given in (attrs or {}).items():
            f.require_group(name).attrs.update(given) if name not in f else f[name].attrs.update(given)
    return path


def rows_of(query):
    return list(query.rows.items())


def refused(source, condition, **options):
    with pytest.raises(errors.UnalignedDimensions) as caught:
        source.query(condition, **options)
    assert caught.value.kind == "unaligned-dimensions"
    return caught.value


def test_fixed_and_resizable_of_one_length_are_one(tmp_path):
    fixed, growing = values(1000), values(1000) + 0.25
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["g/fixed"] = fixed
        f.create_dataset("g/growing", data=growing, maxshape=(None,))
        f["h/other"] = fixed[::-1]
    source = sieva.open(tmp_path / "a.h5")
    expected = int(((fixed > 0) & (growing < 0.5) & (fixed[::-1] > -1)).sum())
    for parts in itertools.permutations(["fixed > 0", "growing < 0.5", "other > -1"]):
        query = source.query(" AND ".join(parts))
        assert list(query.rows.values()) == [1000]
        assert query.count() == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((9, 4), (4,)), lambda a, b: (a > 0) & (b > 0)),
        (((9, 4), (9,)), lambda a, b: (a > 0) & (b > 0)[:, None]),
        (((9, 4), (4, 9)), lambda a, b: (a > 0) & (b > 0).T),
        (((3, 3), (3, 3)), lambda a, b: (a > 0) & (b > 0)),
        (((3, 3, 5), (3, 3)), lambda a, b: (a > 0) & (b > 0)[:, :, None]),
        (((9, 1), (9,)), lambda a, b: (a > 0) & (b > 0)[:, None]),
        (((7,), (1,)), lambda a, b: (a > 0) & (b > 0)),
    ],
)
def test_shapes_of_one_reading(tmp_path, shapes, expected):
    a, b = (values(*shape) + 0.1 for shape in shapes)
    source = sieva.open(write(tmp_path / "a.h5", {"g/a": a, "h/b": b}))
    hits = int(expected(a, b).sum())
    assert source.query("a > 0 AND b > 0").count() == hits
    assert source.query("b > 0 AND a > 0").count() == hits
    found = source.query("a > 0", select=["a"])
    if a.ndim > b.ndim or a.shape == b.shape:
        broadcast = source.query("a > 0 AND b > 0", select=["b"])
        assert len(broadcast.read("b")) == hits
        np.testing.assert_array_equal(found.read("a"), a[a > 0])


@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((3, 4, 3), (4, 3, 3))])
def test_shapes_of_several_readings(tmp_path, shapes):
    a, b = (values(*shape) for shape in shapes)
    source = sieva.open(write(tmp_path / "a.h5", {"g/a": a, "h/b": b}))
    for condition in ("a > 0 AND b > 0", "b > 0 AND a > 0"):
        error = refused(source, condition)
        assert "there is more than one way to line them up" in str(error)
        assert "dims={" in error.hint
        assert "--dims " in error.hint
        refused(source, condition, cross=True)


def test_what_the_hint_says_mends_it(tmp_path):
    a, b = values(3, 3), values(3)
    path = write(tmp_path / "a.h5", {"g/a": a, "h/b": b})
    hint = refused(sieva.open(path), "a > 0 AND b > 0").hint
    dims = json.loads(hint[hint.index("dims=") + 5 : hint.index("}") + 1])
    assert dims == {"g/a": ["axis0", "axis1"], "h/b": ["axis0"]}
    named = sieva.open(path, dims=dims).query("a > 0 AND b > 0")
    assert rows_of(named) == [("axis0", 3), ("axis1", 3)]
    assert named.count() == int(((a > 0) & (b > 0)[:, None]).sum())


def test_a_product_is_made_when_it_is_asked_for(tmp_path):
    a, b = values(9), values(4)
    path = write(tmp_path / "a.h5", {"a": a, "g/b": b})
    source = sieva.open(path)
    error = refused(source, "a > 0 AND b > 0")
    assert "'a' (phony_dim_1: 9) and 'g/b' (phony_dim_0: 4) do not line up" in str(error)
    assert error.hint.endswith("cross=True (--cross, CROSS behind FROM) asks for each position with each")
    pairs = int(((a > 0)[:, None] & (b > 0)).sum())
    assert source.query("a > 0 AND b > 0", cross=True).count() == pairs
    assert source.sql("SELECT a, b CROSS WHERE a > 0 AND b > 0").count() == pairs
    assert source.sql("SELECT a, b WHERE a > 0 AND b > 0", cross=True).count() == pairs
    assert sieva.sql(f"SELECT count(*) FROM '{path}' CROSS WHERE a > b").to_arrow()[0][0].as_py() == int(
        (a[:, None] > b).sum()
    )
    query = source.sql("SELECT a CROSS WHERE a > 0 AND b > 0")
    assert len(query.read("b")) == pairs
    counts, _ = query.histogram("a", 3)
    assert counts.sum() == pairs
    refused(source, "a > (SELECT max(b)) AND b > 0")
    with pytest.raises(errors.UnalignedDimensions):
        source.sql("SELECT a WHERE a > 0 AND b > 0")
    asked = [sys.executable, "-m", "sieva", "query", f"SELECT count(*) FROM '{path}' WHERE a > b"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cross=True (--cross, CROSS behind FROM)" in done.stderr
    done = subprocess.run([*asked, "--cross", "--format", "csv"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == str(int((a[:, None] > b).sum()))


def test_coordinates_of_one_grid_and_dimensions_of_two(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, length in (("lat", 5), ("lon", 4), ("station", 5)):
            f.createDimension(name, length)
            f.createVariable(name, "f8", (name,))[:] = np.arange(length)
        f.createVariable("t", "f8", ("lat", "lon"))[:] = np.arange(20).reshape(5, 4)
        f.createVariable("height", "f8", ("station",))[:] = np.arange(5)
    source = sieva.open(tmp_path / "a.nc")
    assert source.query("lat > 1 AND lon < 2").count() == 6
    assert source.query("idx(lat) > 1 AND idx(lon) < 2").count() == 6
    error = refused(source, "lat > 1 AND height > 2")
    assert 'dims={"height": ["lat"]}' in error.hint
    refused(source, "idx(lat) > 1 AND height > 2")
    assert source.query("lat > 1 AND height > 2", cross=True).count() == 6
    renamed = sieva.open(tmp_path / "a.nc", dims={"height": ["lat"]})
    assert renamed.query("lat > 1 AND height > 2").count() == 2


def test_unnamed_dimensions_beside_named_ones(tmp_path):
    grid, weight = values(5, 4), values(5)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["lat"], f["lon"], f["three"] = np.arange(5.0), np.arange(4.0), np.arange(5.0)
        for scale in ("lat", "lon", "three"):
            f[scale].make_scale()
        f["t"] = grid
        f["t"].dims[0].attach_scale(f["lat"])
        f["t"].dims[1].attach_scale(f["lon"])
        f["g/weight"] = weight
    source = sieva.open(tmp_path / "a.h5")
    query = source.query("t > 0 AND weight > 0")
    assert rows_of(query) == [("lat", 5), ("lon", 4)]
    assert query.count() == int(((grid > 0) & (weight > 0)[:, None]).sum())
    plan = query.explain()
    assert "along lat: t, lat (named by the file); g/weight (of equal length)" in plan
    error = refused(source, "t > 0 AND weight > 0 AND three >= 0")
    assert "have 2 of that length (lat, three)" in str(error)


def test_gpm_names_dimensions(tmp_path):
    rate, latitude, fine = values(40, 40), values(40, 40) * 40, values(40, 24)
    path = write(
        tmp_path / "gpm.h5",
        {"NS/SLV/precipRateNearSurface": rate, "NS/Latitude": latitude, "HS/rate": fine, "NS/tb": values(40)},
        {
            "NS/SLV/precipRateNearSurface": {"DimensionNames": "nscan,nray"},
            "NS/Latitude": {"DimensionNames": np.bytes_("nscan,nray")},
            "HS/rate": {"DimensionNames": "nscan,nray"},
            "NS/tb": {"DimensionNames": "nscan"},
        },
    )
    source = sieva.open(path)
    query = source.query("precipRateNearSurface > 1 AND NS/Latitude < 0 AND tb > 0")
    assert rows_of(query) == [("nscan", 40), ("nray", 40)]
    expected = (rate > 1) & (latitude < 0) & (values(40) > 0)[:, None]
    assert query.count() == int(expected.sum())
    assert "named by DimensionNames (GPM)" in query.explain()
    [first, _] = json.loads(query.explain_json())["rows"]
    assert [a["array"] for a in first["arrays"]] == ["NS/SLV/precipRateNearSurface", "NS/Latitude", "NS/tb"]
    assert rows_of(source.query("HS/rate > 0")) == [("nscan", 40), ("nray", 24)]


METADATA = """GROUP=SwathStructure
	GROUP=SWATH_1
		SwathName="O3"
		GROUP=GeoField
			OBJECT=GeoField_1
				GeoFieldName="Latitude"
				DimList=("nTimes")
			END_OBJECT=GeoField_1
			OBJECT=GeoField_2
				GeoFieldName="Pressure"
				DimList=("nLevels")
			END_OBJECT=GeoField_2
		END_GROUP=GeoField
		GROUP=DataField
			OBJECT=DataField_1
				DataFieldName="Value"
				DimList=("nTimes","nLevels")
			END_OBJECT=DataField_1
		END_GROUP=DataField
	END_GROUP=SWATH_1
END_GROUP=SwathStructure
END
"""


def test_hdf_eos5_names_dimensions(tmp_path):
    value, latitude, pressure = values(12, 12), values(12), np.arange(12.0)
    swath = "HDFEOS/SWATHS/O3"
    path = write(
        tmp_path / "a.he5",
        {
            f"{swath}/Data Fields/Value": value,
            f"{swath}/Geolocation Fields/Latitude": latitude,
            f"{swath}/Geolocation Fields/Pressure": pressure,
            "HDFEOS INFORMATION/StructMetadata.0": np.bytes_(METADATA.ljust(32000, "\0")),
        },
    )
    query = sieva.open(path).query("Value > 0 AND Latitude > 0 AND Pressure < 6")
    assert rows_of(query) == [("nTimes", 12), ("nLevels", 12)]
    assert query.count() == int(((value > 0) & (latitude > 0)[:, None] & (pressure < 6)).sum())
    assert "named by StructMetadata.0 (HDF-EOS5)" in query.explain()


def test_openpmd_names_dimensions(tmp_path):
    field, density, where = values(8, 8), values(8, 8) + 1, values(30)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.attrs.update({"openPMD": "1.1.0", "meshesPath": "fields/", "particlesPath": "particles/"})
        f["data/5/fields/E/x"] = field
        f["data/5/fields/E"].attrs.update({"axisLabels": ["y", "x"], "dataOrder": "C"})
        f["data/5/fields/rho"] = density
        f["data/5/fields/rho"].attrs.update({"axisLabels": ["x", "y"], "dataOrder": "F"})
        f["data/5/fields/turned"] = density
        f["data/5/fields/turned"].attrs.update({"axisLabels": ["x", "y"], "dataOrder": "C"})
        for species in ("e", "p"):
            f[f"data/5/particles/{species}/position/x"] = where
            f[f"data/5/particles/{species}/weighting"] = where[::-1]
    source = sieva.open(tmp_path / "a.h5")
    query = source.query("E/x > 0 AND rho > 1 AND turned > 1")
    assert rows_of(query) == [("y", 8), ("x", 8)]
    assert query.count() == int(((field > 0) & (density > 1) & (density > 1).T).sum())
    query = source.query("e/position/x > 0 AND e/weighting > 0")
    assert query.count() == int(((where > 0) & (where[::-1] > 0)).sum())
    assert "e/position/x, data/5/particles/e/weighting (named by openPMD)" in query.explain()
    refused(source, "e/position/x > 0 AND p/weighting > 0")


def test_nexus_names_dimensions(tmp_path):
    counts, time, energy, edges = values(6, 6), np.arange(6.0), np.arange(6.0) * 2, np.arange(7.0)
    with h5py.File(tmp_path / "a.nxs", "w") as f:
        f["entry/detector/counts"] = counts
        group = f.create_group("entry/data")
        group.attrs.update(
            {"NX_class": "NXdata", "signal": "counts", "axes": ["time", "energy"], "other_indices": [1]}
        )
        group["counts"] = f["entry/detector/counts"]
        group["errors"] = counts + 1
        group["time"], group["energy"], group["other"] = time, energy, -energy
        group["edges"] = edges
        old = f.create_group("entry/old")
        old.attrs["NX_class"] = "NXdata"
        old["data"], old["a"], old["b"] = counts, time, energy
        old["data"].attrs.update({"signal": 1, "axes": "[a:b]"})
    source = sieva.open(tmp_path / "a.nxs")
    query = source.query("entry/data/errors > 0 AND time > 2 AND energy < 9 AND other < -2")
    assert rows_of(query) == [("time", 6), ("energy", 6)]
    assert query.count() == int(
        ((counts + 1 > 0) & (time > 2)[:, None] & ((energy < 9) & (-energy < -2))).sum()
    )
    assert "named by NeXus" in query.explain()
    old = source.query("entry/old/data > 0 AND a > 2 AND b < 9")
    assert rows_of(old) == [("a", 6), ("b", 6)]
    assert old.count() == int(((counts > 0) & (time > 2)[:, None] & (energy < 9)).sum())
    refused(source, "entry/data/errors > 0 AND edges > 2", cross=False)


def test_joined_files_follow_the_rule(tmp_path):
    for n in range(2):
        write(tmp_path / f"{n}.h5", {"a": values(5) + n, "g/b": values(5) - n, "c": values(3)})
    source = sieva.open(str(tmp_path / "?.h5"), join="step")
    a, b, c = (np.stack([values(k) + s * n for n in range(2)]) for k, s in ((5, 1), (5, -1), (3, 0)))
    assert source.query("a > 0 AND b > 0").count() == int(((a > 0) & (b > 0)).sum())
    refused(source, "a > 0 AND c > 0")
    pairs = ((a > 0)[:, :, None] & (c > 0)[:, None, :]).sum()
    assert source.query("a > 0 AND c > 0", cross=True).count() == int(pairs)
    with pytest.raises(errors.Unsupported, match="queries of such a source do not use them"):
        source.build_index("a", kinds=["sorted"])


def test_an_index_does_not_change_what_lines_up(tmp_path):
    a, b = np.sort(values(200_000)), values(200_000)
    path = write(tmp_path / "a.h5", {"g/a": a, "h/b": b})
    expected = int(((a > 2) & (b > 0)).sum())
    source = sieva.open(path)
    source.build_index("a", "b", kinds=["zonemap", "bitmap", "sorted"])
    for access in ("auto", "scan", "zonemap", "bitmap", "sorted"):
        again = sieva.open(path).query("a > 2 AND b > 0", select=["b"], access=access)
        assert again.count() == expected, access
        np.testing.assert_array_equal(again.read("b"), b[(a > 2) & (b > 0)])
    shutil.rmtree(f"{path}.sieva", ignore_errors=True)


def test_parts_of_complex_numbers(tmp_path):
    z = values(50) + 1j * values(50)[::-1]
    path = write(tmp_path / "a.h5", {"g/z": z, "w": np.zeros(2, [("r", "f8"), ("x", "f8")])})
    source = sieva.open(path)
    assert source.query("z.real > 0 AND z.imag > 0").count() == int(((z.real > 0) & (z.imag > 0)).sum())
    assert source.query('"g/z.real" > 0 AND g/z.r > 0').count() == int((z.real > 0).sum())
    np.testing.assert_array_equal(source["z.imag"][...], z.imag)
    with pytest.raises(errors.UnknownArray):
        source.query("w.real > 0")


def test_openpmd_particles_of_one_species_without_a_name(tmp_path):
    """Beam physics: the records lie right in the folder of the particles."""
    where, momentum = np.arange(7.0), np.arange(7.0)[::-1]
    with h5py.File(tmp_path / "beam.h5", "w") as f:
        f.attrs.update({"openPMD": "2.0.0", "particlesPath": "particles/"})
        f["data/1/particles/position/x"], f["data/1/particles/momentum/z"] = where, momentum
    query = sieva.open(tmp_path / "beam.h5").query("x > 1 AND z > 2")
    assert query.count() == int(((where > 1) & (momentum > 2)).sum())


def test_nexus_says_which_way_a_square_lies(tmp_path):
    signal, other = values(5, 5), np.arange(25.0).reshape(5, 5)
    with h5py.File(tmp_path / "a.nxs", "w") as f:
        group = f.create_group("entry")
        group.attrs.update({"NX_class": "NXdata", "signal": "S", "axes": ["x", "y"], "Q_indices": [1, 0]})
        group["S"], group["Q"] = signal, other
    query = sieva.open(tmp_path / "a.nxs").query("S > 0 AND Q > 7")
    assert query.count() == int(((signal > 0) & (other.T > 7)).sum())
