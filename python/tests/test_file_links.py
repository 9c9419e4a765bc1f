"""What an HDF5 file may lead to, from here and from a worker: refused in the same words."""

import h5py
import numpy as np
import pytest
import sieva

OUTSIDE = "is outside of what may be opened"
SECRET = np.arange(100.0, 104.0)
OPEN = np.arange(4.0)


@pytest.fixture
def places(tmp_path):
    """Return a directory that may be opened and one that may not, each with the same files."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, values in ((inside, OPEN), (outside, SECRET)):
        folder.mkdir()
        (folder / "raw.bin").write_bytes(values.tobytes())
        for name in ("other.h5", "other0.h5"):
            with h5py.File(folder / name, "w") as f:
                f["x"] = values
    return inside, outside


def external_link(f, folder, name):
    f["leads"] = h5py.ExternalLink(f"{folder}/{name}.h5", "x")


def link_to_link(f, folder, name):
    f["hidden"] = h5py.ExternalLink(f"{folder}/{name}.h5", "/")
    f["leads"] = h5py.SoftLink("/hidden/x")


def virtual(f, folder, name):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(f"{folder}/{name}.h5", "x", (4,))
    f.create_virtual_dataset("leads", layout, fillvalue=-1)


def virtual_behind_a_link(f, folder, name):
    f["hidden"] = h5py.ExternalLink(f"{folder}/{name}.h5", "/")
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(".", "hidden/x", (4,))
    f.create_virtual_dataset("leads", layout, fillvalue=-1)


def virtual_by_number(f, folder, name):
    space = h5py.h5s.create_simple((4,), (h5py.h5s.UNLIMITED,))
    each = h5py.h5s.create_simple((4,), (h5py.h5s.UNLIMITED,))
    each.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (4,), (4,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_virtual(each, f"{folder}/{name}%b.h5".encode(), b"x", h5py.h5s.create_simple((4,)))
    h5py.h5d.create(f.id, b"leads", h5py.h5t.IEEE_F64LE, space, plist)


def raw_data(f, folder, name):
    name = {"other": "raw"}.get(name, name)
    f.create_dataset("leads", (4,), "f8", external=[(f"{folder}/{name}.bin", 0, 32)])


# Through an external link nothing else is followed, wherever that leads.
TWICE = [link_to_link, virtual_behind_a_link]
WAYS = [external_link, virtual, virtual_by_number, raw_data, *TWICE]


def refused(path, **options):
    """Return how asking for the array ends."""
    source = sieva.open(path, **options)
    assert source.query("own >= 0").count() == 4
    with pytest.raises(sieva.SievaError) as caught:
        source.query("leads >= 0").count()
    return caught.value.kind, caught.value.message


@pytest.mark.parametrize("spelling", ["{outside}", "../outside", "{inside}/up"])
@pytest.mark.parametrize("way", WAYS)
def test_what_leads_out_is_refused_in_the_same_words(places, way, spelling):
    inside, outside = places
    (inside / "up").symlink_to(outside)
    folder = spelling.format(inside=inside, outside=outside)
    words = {}
    for name in ("other", "none"):
        path = inside / "a.h5"
        with h5py.File(path, "w") as f:
            f["own"] = OPEN
            way(f, folder, name)
        for external in ([], [inside.parent]):
            for isolated in (False, True):
                said = refused(path, allow=[inside], external=external, isolated=isolated)
                assert said[0] == "link-refused", (name, external, isolated, said)
                # The name of the file is what was asked for, and all else is alike.
                names = {"none": "other", "raw.bin": "other.bin"}
                told = said[1]
                for old, new in names.items():
                    told = told.replace(old, new)
                words.setdefault(str(external), set()).add(told)
    assert all(len(told) == 1 for told in words.values()), words


@pytest.mark.parametrize("way", WAYS)
def test_what_leads_to_its_own_directory_needs_permission(places, way):
    inside, _ = places
    path = inside / "a.h5"
    with h5py.File(path, "w") as f:
        f["own"] = OPEN
        way(f, inside, "other")
    for isolated in (False, True):
        assert refused(path, isolated=isolated)[0] == "link-refused"
        assert refused(path, isolated=isolated, allow=[inside])[0] == "link-refused"
        if way not in TWICE:
            source = sieva.open(path, isolated=isolated, external=[inside])
            np.testing.assert_array_equal(source["leads"][...], OPEN)
    if way not in TWICE:
        source = sieva.open(path, external=[inside], allow=[inside])
        np.testing.assert_array_equal(source["leads"][...], OPEN)
    # Nobody can be asked from a worker, so that it opens nothing but the file.
    kind, told = refused(path, isolated=True, external=[inside], allow=[inside])
    assert kind == "link-refused"
    assert OUTSIDE in told or way in TWICE


@pytest.mark.parametrize("isolated", [False, True])
def test_raw_data_that_change_their_place_are_not_followed(places, isolated):
    """What was looked at is what is read: a name that leads elsewhere by then is refused."""
    inside, outside = places
    path = inside / "a.h5"
    with h5py.File(path, "w") as f:
        raw_data(f, inside, "raw")
    options = [{"external": [inside]}] + ([] if isolated else [{"external": [inside], "allow": [inside]}])
    for given in options:
        source = sieva.open(path, isolated=isolated, **given)
        np.testing.assert_array_equal(source["leads"][...], OPEN)
        (inside / "link").symlink_to(outside / "raw.bin")
        (inside / "raw.bin").rename(inside / "kept")
        (inside / "link").rename(inside / "raw.bin")
        with pytest.raises(sieva.errors.LinkRefused):
            source["leads"][...]
        (inside / "kept").rename(inside / "raw.bin")


@pytest.mark.parametrize("isolated", [False, True])
def test_sources_of_virtual_data_that_change_lead_nowhere_else(places, isolated):
    """A source that was harmless when it was looked at is replaced by one with raw data elsewhere."""
    inside, outside = places
    path = inside / "a.h5"
    with h5py.File(path, "w") as f:
        virtual(f, inside, "other")
    with h5py.File(inside / "bad.h5", "w") as f:
        f.create_dataset("x", (4,), "f8", external=[(f"{outside}/raw.bin", 0, 32)])
    source = sieva.open(path, isolated=isolated, external=[inside])
    (inside / "bad.h5").rename(inside / "other.h5")
    with pytest.raises(sieva.errors.LinkRefused):
        source["leads"][...]
