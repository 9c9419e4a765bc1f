"""The repository's own checks can fail: they find what they are for, and nothing else."""

import check_features
import check_layers
import check_tidy
import pytest


def workspace(*edges, packages=()):
    """Return `cargo metadata` of a workspace with these (crate, dependency, kind) edges."""
    names = {name for edge in edges for name in edge[:2]} | set(packages)
    return {
        "packages": [
            {
                "name": name,
                "dependencies": [
                    {"name": dependency, "kind": kind, "path": f"crates/{dependency}"}
                    for source, dependency, kind in edges
                    if source == name
                ],
            }
            for name in names
        ]
    }


@pytest.mark.parametrize("kind", [None, "build", "dev"])
@pytest.mark.parametrize(
    ("crate", "dependency"),
    [("sieva-types", "sieva-store"), ("sieva-query", "sieva-format-hdf5"), ("sieva-index", "sieva-format")],
)
def test_layers_refuse_edges_upwards_and_sideways(crate, dependency, kind):
    (fault,) = check_layers.find_faults(workspace((crate, dependency, kind)))
    assert fault.startswith(f"{crate} (level ")
    assert f"-> {dependency} (level " in fault


def test_layers_allow_edges_downwards():
    edges = [
        ("sieva", "sieva-query", None),
        ("sieva-query", "sieva-types", None),
        ("sieva-python", "sieva", None),
    ]
    assert check_layers.find_faults(workspace(*edges)) == []


def test_layers_keep_the_testing_crate_to_tests():
    allowed = [("sieva-format", "sieva-testing", "dev"), ("sieva-testing", "sieva-format", None)]
    assert check_layers.find_faults(workspace(*allowed)) == []
    (fault,) = check_layers.find_faults(workspace(("sieva-format", "sieva-testing", None)))
    assert fault == "sieva-format -> sieva-testing: for dev-dependencies only, not normal"


def test_layers_name_a_crate_without_a_level():
    (fault,) = check_layers.find_faults(workspace(packages=["sieva-new"]))
    assert fault.startswith("sieva-new: has no level")


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("a.rs", "use std::fmt;\n", "a.rs:1: no module doc"),
        ("a.py", "import os\n", "a.py:1: no module doc"),
        ("a.py", "def f(:\n", "a.py:1: no module doc"),
        ("a.rs", "//! A.\nfn f() { to" + "do!() }\n", "a.rs:2: to" + "do! left over"),
        ("a.rs", "//! A.\nfn f() { db" + "g!(1); }\n", "a.rs:2: db" + "g!( left over"),
        ("a.py", '"""A."""\n\n# FIX' + "ME later\n", "a.py:3: FIX" + "ME left over"),
        ("a.rs", "//! A.\n" + "\n" * 600, "a.rs: 601 lines, more than 600"),
        ("a.md", "see /ho" + "me/me/x\n", "a.md:1: absolute path"),
        ("Makefile", "all:\n\tcat '/wo" + "rk/x'\n", "Makefile:2: absolute path"),
    ],
)
def test_tidy_finds(path, text, fault):
    (found,) = check_tidy.find_faults(path, text)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.rs", "//! A.\n" + "fn f() {}\n" * 599),
        ("a.rs", "//! A table. Long because it lists every code.\n" + "\n" * 900),
        ("a.py", '"""A."""\n'),
        ("a.md", "from `$HOME/work/x`, ./work/x, https://example.org/home/x and /usr/bin\n"),
    ],
)
def test_tidy_accepts(path, text):
    assert check_tidy.find_faults(path, text) == []


def test_features_that_only_tests_ask_for_are_found():
    wheel = check_features.parse_tree("libc v0.2.1|std\n\nsyn v3.0.9 (proc-macro)|full (*)\n")
    assert wheel == {("libc v0.2.1", "std"), ("syn v3.0.9", "full")}
    assert check_features.find_faults(wheel, wheel | {("rand v0.10.3", "std")}) == []
    tests = {("libc v0.2.1", "std"), ("syn v3.0.9", "extra-traits,full")}
    assert check_features.find_faults(wheel, tests) == [
        "syn v3.0.9: features in the wheel [full], in the tests [extra-traits,full]"
    ]
