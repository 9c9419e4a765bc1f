"""Collections: every answer is that of numpy over every object."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import sieva
from collection_files import make_files, objects
from sieva import errors

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Made:
    """Files, and the catalog that knows them."""

    def __init__(self, folder: Path) -> None:
        self.paths = make_files(folder)
        self.catalog = str(folder / "catalog.sqlite")
        sieva.Catalog(self.catalog).add(*self.paths, collection="boss")
        self.all = list(objects(self.paths))

    def sql(self, text: str, **options: Any) -> Any:
        """Return the query of the collection."""
        return sieva.collection("boss", catalog=self.catalog).sql(text, **options)

    def rows(self, text: str, **options: Any) -> list[tuple[Any, ...]]:
        """Return its rows."""
        table = self.sql(text, **options).to_arrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("collection"))


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (math.isnan(a) and math.isnan(b))
    return a == b


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("low", "high"), [(0, 20), (-1.5, 0), (20, 20), (1e9, 2e9)])
def test_hits_by_object_are_those_of_numpy(made: Made, low: float, high: float, threads: int) -> None:
    got = made.rows(
        "SELECT object, source, count(*) FROM collection('boss') WHERE RADEG = 150.25 "
        f"AND flux BETWEEN {low} AND {high} GROUP BY object",
        threads=threads,
    )
    want = []
    for source, path, keys, arrays in made.all:
        if keys["RADEG"] == 150.25 and "flux" in arrays:
            hits = int(((arrays["flux"] >= low) & (arrays["flux"] <= high)).sum())
            if hits:
                want.append((path, source, hits))
    assert sorted(got) == sorted(want)


def test_rows_come_by_source_object_and_position(made: Made) -> None:
    got = made.rows("SELECT source, object, fiber, class, flux, flux * 2 WHERE flux > 15 AND plate >= 4001")
    want = []
    for source, path, keys, arrays in made.all:
        if keys["plate"] >= 4001 and "flux" in arrays:
            values = arrays["flux"][arrays["flux"] > 15]
            fixed = (source, path, int(keys["fiber"]), keys.get("class"))
            want += [(*fixed, float(x), float(x) * 2) for x in values]
    assert [(r[0], r[1]) for r in got] == [(r[0], r[1]) for r in want]
    assert all(same(a, b) for r, w in zip(got, want, strict=True) for a, b in zip(r, w, strict=True))


def test_aggregates_of_all_are_those_of_one_array(made: Made) -> None:
    condition = "mask >= 1 AND flux < 1e6 AND flux > -1e6"
    got = made.rows(
        "SELECT count(*), sum(flux), min(flux), max(flux), avg(ivar), count(ivar), median(flux), sum(mask), "
        f"count(distinct mask) WHERE {condition}"
    )[0]
    flux, ivar, mask = [], [], []
    for _, _, _, arrays in made.all:
        if {"flux", "mask"} <= arrays.keys():
            kept = (arrays["mask"] >= 1) & (arrays["flux"] < 1e6) & (arrays["flux"] > -1e6)
            flux.append(arrays["flux"][kept])
            ivar.append(arrays["ivar"][kept])
            mask.append(arrays["mask"][kept])
    f, i, m = np.concatenate(flux), np.concatenate(ivar), np.concatenate(mask)
    known = i[~np.isnan(i)]
    assert got[0] == len(f)
    assert got[1] == float(sum(Fraction(float(x)) for x in f))
    assert (got[2], got[3]) == (f.min(), f.max())
    assert got[4] == float(sum(Fraction(float(x)) for x in known)) / len(known)
    assert got[5] == len(known)
    assert got[6] == np.median(f)
    assert got[7] == int(m.sum())
    assert got[8] == len(np.unique(m))


def test_groups_by_keys_and_by_values(made: Made) -> None:
    got = made.rows(
        "SELECT survey, mask, count(*), max(ivar) WHERE ivar > 0 GROUP BY survey, mask HAVING count(*) > 3 "
        "ORDER BY count(*) DESC, survey, mask"
    )
    groups: dict[tuple[str, int], list[float]] = {}
    for _, _, keys, arrays in made.all:
        if "mask" in arrays:
            for x, m in zip(arrays["ivar"], arrays["mask"], strict=True):
                if x > 0:
                    groups.setdefault((str(keys["survey"]), int(m)), []).append(float(x))
    want = [(*key, len(v), max(v)) for key, v in groups.items() if len(v) > 3]
    assert got == sorted(want, key=lambda r: (-r[2], r[0], r[1]))


def test_keys_of_equal_value_are_kept_apart(made: Made) -> None:
    got = made.rows(
        "SELECT fiber, DECDEG, sum(mask * fiber), sum(mask * plate) WHERE mask > 0 GROUP BY fiber, DECDEG"
    )
    want: dict[tuple[int, float], list[int]] = {}
    for _, _, keys, arrays in made.all:
        if "mask" in arrays and (arrays["mask"] > 0).any():
            m = arrays["mask"][arrays["mask"] > 0].astype(int)
            slot = want.setdefault((int(keys["fiber"]), float(keys["DECDEG"])), [0, 0])
            slot[0] += int(m.sum()) * int(keys["fiber"])
            slot[1] += int(m.sum()) * int(keys["plate"])
    assert got == sorted((*key, *value) for key, value in want.items())


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("class = 'STAR'", lambda k: k.get("class") == "STAR"),
        ("class IS NULL AND plate = 4002", lambda k: "class" not in k and k["plate"] == 4002),
        ("NOT (fiber < 5 OR survey = 'boss')", lambda k: not (k["fiber"] < 5 or k["survey"] == "boss")),
        (
            "class LIKE 'G%' AND fiber IN (1, 4, 7)",
            lambda k: str(k.get("class")) == "GALAXY" and k["fiber"] in (1, 4, 7),
        ),
        ("fiber * 2 >= 10 AND 4002 > plate", lambda k: k["fiber"] * 2 >= 10 and k["plate"] < 4002),
    ],
)
def test_conditions_on_keys(made: Made, text: str, keep: Any) -> None:
    got = made.rows(f"SELECT object, count(ivar) WHERE {text} AND ivar > -100 GROUP BY object")
    want = [(p, int((~np.isnan(a["ivar"])).sum())) for _, p, k, a in made.all if keep(k)]
    assert sorted(got) == sorted(w for w in want if w[1])


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("EXISTS class AND class GLOB '[GS]*'", lambda k: str(k.get("class", ""))[:1] in ("G", "S")),
        ("NOT EXISTS class", lambda k: "class" not in k),
        ("tag(survey) NOT GLOB 'b*' AND fiber NOT IN ()", lambda k: not str(k["survey"]).startswith("b")),
        (r"survey LIKE 'b\_%' OR 2 <= fiber <= 3", lambda k: k["fiber"] in (2, 3)),
    ],
)
def test_a_query_and_a_filter_speak_one_language(made: Made, text: str, keep: Any) -> None:
    want = sorted(path for _, path, keys, _ in made.all if keep(keys))
    assert 0 < len(want) < len(made.all)
    found = sieva.Catalog(made.catalog).find(text, name="ivar", collection="boss")
    assert sorted(o.path.removesuffix("/ivar") for o in found) == want
    query = made.sql(f"SELECT object, count(*) WHERE ({text}) AND (ivar IS NULL OR TRUE) GROUP BY object")
    assert query.stats()["objects"] == len(want)
    with_rows = sorted(path for _, path, keys, arrays in made.all if keep(keys) and len(arrays["ivar"]))
    assert sorted(query.to_arrow()["object"].to_pylist()) == with_rows


PLANNED = [
    "SELECT object, source, fiber, class, flux * 2 AS x WHERE flux > 15 AND plate > 4000 LIMIT 40 OFFSET 3",
    "SELECT * WHERE (fiber = 2 OR mask = 3) AND ivar > 0 AND class NOT LIKE 'G%'",
    "SELECT count(*), sum(flux), avg(ivar), median(flux), count(DISTINCT mask) WHERE mask >= 1",
    "SELECT survey, mask + 1, max(ivar) AS ivar WHERE EXISTS class GROUP BY survey, 2 HAVING count(*) > 3",
    "SELECT mask, min(flux) WHERE NOT class GLOB 'Q*' GROUP BY mask ORDER BY count(*) DESC, mask LIMIT 2",
    "SELECT object, fiber * 2, max(raw(mask) * plate) WHERE ivar BETWEEN 0 AND 9 GROUP BY object",
]


@pytest.mark.parametrize("text", PLANNED)
def test_a_plan_is_asked_again(made: Made, text: str) -> None:
    query = made.sql(text)
    plan = query.plan()
    want = query.to_arrow()
    collection = sieva.collection("boss", catalog=made.catalog)
    for same_plan in (
        sieva.Plan.from_bytes(bytes(plan)),
        sieva.Plan.from_json(plan.to_json()),
        made.sql(plan.sql()).plan(),
    ):
        assert (same_plan, same_plan.id) == (plan, plan.id)
        again = collection.query(same_plan)
        assert again.to_arrow().equals(want)
        assert again.stats()["objects"] == query.stats()["objects"]
        assert again.plan() == plan


def test_equal_questions_of_a_collection_have_equal_plans(made: Made) -> None:
    plan = made.sql("SELECT flux WHERE plate = 4001 AND fiber < 3 AND flux > 0 AND ivar > 0").plan()
    same_plan = made.sql(
        "select flux where 0 < flux and not ivar <= 0 and 3 > fiber and plate in (4001)"
    ).plan()
    assert same_plan == plan
    # The first array says what the objects are.
    assert made.sql("SELECT flux WHERE plate = 4001 AND fiber < 3 AND ivar > 0 AND flux > 0").plan() != plan
    assert made.sql("SELECT flux WHERE plate = 4001 AND fiber < 4 AND flux > 0 AND ivar > 0").plan() != plan
    with pytest.raises(errors.InvalidValue, match=r"the plan is of collection\('boss'\)"):
        sieva.open(made.paths[0]).query(plan)
    one = sieva.open(made.paths[0])
    with pytest.raises(errors.InvalidValue, match="not of the collection 'boss'"):
        sieva.collection("boss", catalog=made.catalog).query(
            one.sql('SELECT count(*) WHERE "4000/1/ivar" > 0').plan()
        )


def test_the_command_line_prints_the_plan_of_a_collection(made: Made) -> None:
    text = "SELECT object, count(*) FROM collection('boss') WHERE plate = 4001 AND flux > 0 GROUP BY object"
    command = [sys.executable, "-m", "sieva", "plan", text, "--catalog", made.catalog]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plan_id, sql = done.stdout.splitlines()
    plan = made.sql(text).plan()
    assert (plan_id, sql) == (plan.id, plan.sql())
    assert "FROM collection('boss')" in sql
    assert "tag('plate') = 4001" in sql


def test_what_only_the_catalog_answers_stands_alone(made: Made) -> None:
    with pytest.raises(errors.UnknownFunction, match="no function 'exists'"):
        made.sql("SELECT object, count(*) WHERE EXISTS class OR ivar > 0 GROUP BY object")


def test_keys_or_data_are_evaluated_together(made: Made) -> None:
    got = made.rows("SELECT object, count(*) WHERE fiber = 2 OR mask = 3 GROUP BY object")
    want = []
    for _, path, keys, arrays in made.all:
        if "mask" in arrays:
            hits = len(arrays["mask"]) if keys["fiber"] == 2 else int((arrays["mask"] == 3).sum())
            if hits:
                want.append((path, hits))
    assert sorted(got) == sorted(want)


def test_objects_that_lack_an_array_are_counted(made: Made) -> None:
    query = made.sql("SELECT object, count(*) WHERE ivar > 0 AND mask > 0 AND flux > 0 GROUP BY object")
    query.to_arrow()
    stats = query.stats()
    lacking = sum("flux" not in a or "mask" not in a for *_, a in made.all)
    assert stats["lacking"] == lacking > 0
    assert stats["evaluated"] + lacking == stats["objects"] == len(made.all)
    assert stats["sources_opened"] == len(made.paths)


def test_limit_offset_and_count(made: Made) -> None:
    every = made.rows("SELECT object, ivar WHERE ivar > 5")
    assert made.sql("SELECT object, ivar WHERE ivar > 5").count() == len(every)
    assert made.rows("SELECT object, ivar WHERE ivar > 5 LIMIT 40 OFFSET 17") == every[17:57]
    assert made.sql("SELECT object, ivar WHERE ivar > 5 LIMIT 40 OFFSET 17").count() == 40
    assert made.rows("SELECT object, count(*) WHERE ivar > 5 GROUP BY object ORDER BY count(*) DESC LIMIT 1")


def test_sources_come_by_name_whenever_they_were_added(tmp_path: Path) -> None:
    names = ["run10.h5", "run9.h5", "run2.h5", "run010.h5", "a.h5", "run1.h5"]
    catalog = sieva.Catalog(str(tmp_path / "catalog.sqlite"))
    for n, name in enumerate(names):
        with h5py.File(tmp_path / name, "w") as file:
            file["v"] = [n, n]
        # One by one, so that the catalog knows them in this order.
        catalog.add(tmp_path / name, collection="runs")
    collection = sieva.collection("runs", catalog=str(tmp_path / "catalog.sqlite"))
    for threads in (1, 2):
        table = collection.sql("SELECT source, v WHERE v >= 0 LIMIT 11", threads=threads).to_arrow()
        expected = ["a.h5", "run1.h5", "run2.h5", "run9.h5", "run10.h5", "run010.h5"]
        assert [name.rsplit("/", 1)[-1] for name in table["source"].to_pylist()[::2]] == expected
        assert table["v"].to_pylist() == [4, 4, 5, 5, 2, 2, 1, 1, 0, 0, 3]


def test_no_object_is_an_empty_answer_of_the_same_columns(made: Made) -> None:
    table = made.sql(
        "SELECT object, fiber, max(mask) WHERE plate = 1 AND mask > 0 GROUP BY object"
    ).to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["object", "fiber", "max(mask)"])
    assert made.rows("SELECT count(*), sum(flux) WHERE plate = 1 AND flux > 0") == [(0, None)]
    assert made.sql("SELECT flux WHERE plate = 1").count() == 0


def test_explain_tells_what_the_catalog_left(made: Made) -> None:
    query = made.sql("SELECT object, count(*) WHERE plate = 4001 AND flux > 0 GROUP BY object")
    text = query.explain(analyze=True)
    assert "plate = 4001" in text
    assert "11 objects in 1 sources" in text
    assert "data       flux > 0" in text
    assert "analyzed" in text


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "SELECT object, count(*) WHERE fluxx > 0 GROUP BY object",
            errors.UnknownArray,
            "neither a key nor an array",
        ),
        (
            "SELECT fiber, count(*) WHERE flux > 0 GROUP BY plate",
            errors.SyntaxError_,
            "varies within a group",
        ),
        ("SELECT flux WHERE flux > 0 ORDER BY flux", errors.Unsupported, "ORDER BY"),
        ("SELECT object, count(*) WHERE plate = 4001 GROUP BY object", errors.Unsupported, "names no array"),
        ("SELECT flux FROM 'a.nc'", errors.InvalidValue, "collection"),
        ("SELECT histogram(flux, 4) WHERE flux > 0", errors.Unsupported, "range"),
    ],
)
def test_errors_say_what_to_do(made: Made, text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        made.sql(text).to_arrow()


def test_unknown_collection_lists_those_there_are(made: Made) -> None:
    with pytest.raises(errors.UnknownAttribute, match="it has boss"):
        sieva.collection("bos", catalog=made.catalog)


def test_a_name_that_is_key_and_array(tmp_path: Path) -> None:
    path = tmp_path / "both.h5"
    with h5py.File(path, "w") as file:
        file.create_group("a").create_dataset("z", data=np.arange(10.0))
        file["a"].attrs["z"] = 3.0
    catalog = str(tmp_path / "c.sqlite")
    sieva.Catalog(catalog).add(path, collection="both")
    both = sieva.collection("both", catalog=catalog)
    with pytest.raises(errors.AmbiguousName, match="key and an array"):
        both.sql("SELECT z WHERE z > 1")
    assert both.sql('SELECT "z" WHERE tag(z) = 3 AND "z" > 6').to_arrow().to_pydict() == {
        "z": [7.0, 8.0, 9.0]
    }
    assert both.sql('SELECT "z" WHERE tag(z) = 4 AND "z" > 6').count() == 0


def test_members_of_compounds_and_arrays_at_the_root(tmp_path: Path) -> None:
    rows = np.zeros(50, dtype=[("flux", ">f4"), ("loglam", "<f4")])
    rows["flux"] = np.linspace(-1, 1, 50)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        for name in ("x", "y"):
            file.create_dataset(f"g/{name}/coadd", data=rows)
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["t"] = np.arange(5)
        file.attrs["run"] = 9
    catalog = str(tmp_path / "c.sqlite")
    sieva.Catalog(catalog).add(tmp_path / "c.h5", collection="members")
    sieva.Catalog(catalog).add(tmp_path / "r.h5", collection="roots")
    members = sieva.collection("members", catalog=catalog)
    got = (
        members.sql("SELECT object, count(*) WHERE flux > 0 AND loglam = 0 GROUP BY object")
        .to_arrow()
        .to_pylist()
    )
    assert got == [{"object": "g/x", "count(*)": 25}, {"object": "g/y", "count(*)": 25}]
    roots = sieva.collection("roots", catalog=catalog)
    assert roots.sql("SELECT run, t WHERE t >= 3").to_arrow().to_pydict() == {"run": [9, 9], "t": [3, 4]}


def test_a_changed_file_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["g/flux"] = np.arange(10.0)
    catalog = str(tmp_path / "c.sqlite")
    sieva.Catalog(catalog).add(path, collection="one")
    with h5py.File(path, "w") as file:
        file["other"] = np.zeros(1000)
        file["g/flux"] = np.arange(20.0)
    one = sieva.collection("one", catalog=catalog)
    assert one.sql("SELECT count(*) WHERE flux >= 0").to_arrow()[0][0].as_py() == 20
    path.unlink()
    with pytest.raises(errors.FileNotFound, match=r"f\.h5"):
        one.sql("SELECT count(*) WHERE flux >= 0")


def test_an_array_of_another_type_is_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a/v"] = np.arange(4.0)
        file["b/v"] = np.arange(4)
    catalog = str(tmp_path / "c.sqlite")
    sieva.Catalog(catalog).add(tmp_path / "f.h5", collection="c")
    c = sieva.collection("c", catalog=catalog)
    with pytest.raises(errors.TypeMismatch, match="object 'b'"):
        c.sql("SELECT sum(v) WHERE v > 0").to_arrow()
    with pytest.raises(errors.TypeMismatch, match="object 'b'"):
        c.sql("SELECT v WHERE v > 0").to_arrow()
    assert c.sql("SELECT sum(float64(v)) WHERE v > 0").to_arrow()[0][0].as_py() == 12.0


def test_sql_and_command_line_and_outputs(made: Made, tmp_path: Path) -> None:
    where = "RADEG = 150.25 AND flux > 0"
    text = f"SELECT object, count(*) AS n FROM collection('boss') WHERE {where} GROUP BY object"
    want = made.sql(text).to_arrow()
    assert sieva.sql(text, catalog=made.catalog).to_arrow().equals(want)
    out = tmp_path / "out.parquet"
    sieva.sql(text, catalog=made.catalog).to_parquet(out)
    assert pq.read_table(out).to_pydict() == want.to_pydict()
    command = [
        sys.executable,
        "-m",
        "sieva",
        "query",
        text,
        "--format",
        "csv",
        "--catalog",
        made.catalog,
        "--stats",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.strip().splitlines()
    assert lines[0] == "object,n"
    assert len(lines) == want.num_rows + 1
    assert "objects     " in done.stderr
    with pytest.raises(errors.InvalidValue, match="is a file that is asked"):
        made.sql(text).to_csv(made.paths[0])
    with pytest.raises(errors.Unsupported, match="netcdf"):
        made.sql(text).to_netcdf(tmp_path / "x.nc")
