"""Queries asked from coroutines."""

import asyncio
import time

import h5py
import numpy as np
import pytest
import sieva

N = 300_000


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("async") / "values.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(N, dtype="i4"), chunks=(N // 30,), compression="gzip")
    return sieva.open(path, learn=False)


def test_answers_are_those_of_calls(source):
    async def ask():
        query = source.query("v < 1000")
        count, selection, values = await asyncio.gather(
            query.count_async(), query.selection_async(), query.read_async("v")
        )
        table = await query.to_arrow_async()
        counts, _ = await query.histogram_async("v", 10)
        rows = [batch.num_rows async for batch in query.batches_async(300)]
        return query, count, len(selection), values, table.num_rows, counts, rows

    query, count, selected, values, rows, counts, batches = asyncio.run(ask())
    assert (count, selected, rows, sum(counts), sum(batches)) == (1000,) * 5
    np.testing.assert_array_equal(values, np.arange(1000))
    # All of them are one query: it knows what they found.
    before = query.stats()["chunks_decoded"]
    assert query.count() == 1000
    assert query.stats()["chunks_decoded"] == before
    assert query.stats()["evaluations"] == 0


def test_errors_are_raised_where_they_are_awaited(source):
    async def ask():
        await source.query("v < 1000").read_async("nothing")

    with pytest.raises(sieva.errors.UnknownArray):
        asyncio.run(ask())


def test_a_cancelled_coroutine_ends_its_work_and_no_other(source):
    async def ask():
        slow = source.query("sin(sin(sin(sin(sin(v * 1.5))))) + exp(cos(log(v + 1.5))) > 0.31")
        asked = asyncio.ensure_future(slow.count_async())
        await asyncio.sleep(0.002)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow.selection_async(), timeout=0)
        # The query itself was not stopped.
        return await slow.count_async(), slow.count()

    counted, again = asyncio.run(ask())
    assert counted == again > 0


def test_the_loop_goes_on_meanwhile(source):
    async def ask():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        clock = asyncio.ensure_future(tick())
        started = time.monotonic()
        query = source.query("sin(sin(sin(v * 1.5))) + exp(cos(log(v + 1.5))) > 0.31")
        await query.count_async()
        took = time.monotonic() - started
        clock.cancel()
        return ticks, took

    ticks, took = asyncio.run(ask())
    assert ticks > took / 0.1


def test_cancel_stops_a_query(source):
    query = source.query("v < 1000")
    query.cancel()
    with pytest.raises(sieva.errors.Cancelled):
        query.count()
