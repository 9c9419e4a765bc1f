"""The last digit and the sign of zero: what the reference page says of them."""

import itertools
from fractions import Fraction

import h5py
import numpy as np
import sieva


def source(tmp_path, values):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["x"] = values
    return sieva.open(tmp_path / "x.h5")


def test_cube_roots_are_the_nearest_numbers(tmp_path):
    rng = np.random.default_rng(1)
    some = rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    x = np.concatenate([some, np.arange(-20.0, 20) ** 3, [5e-324, -5e-324, 1.7976931348623157e308]])
    roots = source(tmp_path, x).sql("SELECT cbrt(x) AS c").to_arrow()["c"].to_pylist()
    for value, root in zip(x.tolist(), roots, strict=True):
        low, high = (Fraction(float(np.nextafter(root, to))) for to in (-np.inf, np.inf))
        half = Fraction(root)
        assert ((low + half) / 2) ** 3 <= Fraction(value) <= ((high + half) / 2) ** 3, value
    got = source(tmp_path, [0.0, -0.0, np.inf, -np.inf]).sql("SELECT cbrt(x) AS c").to_arrow()["c"].to_numpy()
    np.testing.assert_array_equal(got, [0.0, -0.0, np.inf, -np.inf])
    assert np.signbit(got).tolist() == [False, True, False, True]


def test_zeros_of_medians_and_quantiles(tmp_path):
    places = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0]
    columns = ", ".join(f"quantile(x, {q}) AS q{i}" for i, q in enumerate(places))
    for n in range(1, 5):
        for values in itertools.product([-0.0, 0.0, 1.0, -1.0], repeat=n):
            (row,) = source(tmp_path, values).sql(f"SELECT median(x) AS m, {columns}").to_arrow().to_pylist()
            got = np.array(list(row.values()))
            expected = np.array([np.median(values), *(np.quantile(values, q) for q in places)])
            np.testing.assert_array_equal(got, expected, str(values))
            # Which of the two zeros numpy finds first depends on their order.
            one_zero = len({np.signbit(v) for v in values if v == 0}) < 2
            signs = np.signbit(got) == np.signbit(expected)
            assert signs.all() if one_zero else signs[0], values
