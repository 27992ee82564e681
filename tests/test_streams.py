"""Streams: the rows they send, in which order, and that they send them again."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fastfw as fw
from fastfw import streams
from fastfw.streams import Batch, Dataset, IndexedStream, iid_stream, sorted_stream
from sizes import quick


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    return Dataset(rng.standard_normal((40, 3)), rng.integers(0, 4, 40))


def all_rows(stream):
    return np.array([batch.rows for batch in stream])


# Dataset


def test_a_dataset_shares_canonical_memory():
    X, y = np.ones((4, 2)), np.array([0, 1, 2, 1])
    data = Dataset(X, y)
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.y, y)
    assert not data.X.flags.writeable
    assert not data.y.flags.writeable
    assert (data.n_samples, data.n_features, data.n_classes, len(data)) == (4, 2, 3, 4)
    assert data.dtype == np.float64


def test_conversion_happens_once(data):
    assert data.astype(np.float64) is data
    single = data.astype(np.float32)
    assert single is data.astype("float32")
    assert single.astype(np.float32) is single
    assert single.X.dtype == np.float32
    assert single.y is data.y
    assert single.n_classes == data.n_classes
    assert not single.X.flags.writeable
    np.testing.assert_array_equal(single.X, data.X.astype(np.float32))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_and_pickles_stay_read_only(data, copied):
    other = copied(data)
    np.testing.assert_array_equal(other.X, data.X)
    assert not other.X.flags.writeable
    for stream in (
        iid_stream(data, batch_size=3, rounds=5, seed=(1, 2)),
        sorted_stream(data, batch_size=3, rounds=5),
    ):
        again = copied(stream)
        np.testing.assert_array_equal(all_rows(again), all_rows(stream))
        assert not next(again.row_blocks(2)).flags.writeable
        assert repr(again) == repr(stream)
        batch = next(iter(stream))
        assert not copied(batch).rows.flags.writeable
        np.testing.assert_array_equal(copied(batch).X, batch.X)


# Batch


def test_a_batch_gathers_its_rows_when_asked(data):
    batch = Batch(data, [5, 0, 5])
    X, y = batch
    np.testing.assert_array_equal(X, data.X[[5, 0, 5]])
    np.testing.assert_array_equal(y, data.y[[5, 0, 5]])
    assert X is batch.X
    assert y is batch.y
    for a in (X, y, batch.rows):
        assert not a.flags.writeable
        assert a.flags.c_contiguous
    assert len(batch) == 3
    assert batch.data is data


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([], ValueError, r"shape \(B,\)"),
        ([[1]], ValueError, r"shape \(1, 1\)"),
        ([0.0], TypeError, "integers, but their dtype is float64"),
        ([True], TypeError, "integers, but their dtype is bool"),
        ([0, 40], ValueError, r"lie in 0, \.\.\., 39, but they reach from 0 to 40"),
        ([-1, 0], ValueError, r"from -1 to 0"),
    ],
)
def test_rows_that_do_not_exist_are_refused(data, rows, error, message):
    with pytest.raises(error, match=message):
        Batch(data, rows)
    if np.ndim(rows) == 1:
        with pytest.raises(error):
            IndexedStream(data, [rows])


# IndexedStream


def test_explicit_rows_are_copied(data):
    rows = np.arange(6).reshape(2, 3)
    stream = IndexedStream(data, rows)
    rows[:] = 10**6
    np.testing.assert_array_equal(all_rows(stream), [[0, 1, 2], [3, 4, 5]])


@quick
@given(
    rounds=st.integers(1, 60),
    batch_size=st.integers(1, 9),
    chunk=st.integers(1, 100),
    max_rounds=st.integers(1, 80),
)
def test_row_blocks_are_the_rows_of_the_batches(rounds, batch_size, chunk, max_rounds):
    n = 7
    data = Dataset(np.ones((n, 1)), np.zeros(n, dtype=int))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_CHUNK", chunk)
        stream = iid_stream(data, batch_size=batch_size, rounds=rounds, seed=3)
        expected = all_rows(stream)
        assert len(stream) == stream.rounds == rounds
        blocks = list(stream.row_blocks(max_rounds))
    for block in blocks:
        assert block.dtype == np.intp
        assert block.flags.c_contiguous
        assert not block.flags.writeable
    assert all(len(block) == max_rounds for block in blocks[:-1])
    assert 1 <= len(blocks[-1]) <= max_rounds
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    # The size of the chunks shows nowhere.
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(expected, rng.integers(0, n, (rounds, batch_size), np.int64))


def test_row_blocks_refuse_a_bad_size_at_once(data):
    stream = iid_stream(data, batch_size=2, rounds=3)
    with pytest.raises(ValueError, match="max_rounds must be an integer >= 1, but it is 0"):
        stream.row_blocks(0)
    with pytest.raises(TypeError, match="max_rounds"):
        stream.row_blocks(2.0)


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        ((np.ones((3, 2)), [0, 1, 1]), 3), ([np.ones(2), 0.5], 1), (np.ones((4, 2)), 4),
        (sparse.csr_array(np.eye(5)), 5), (np.float64(1.0), 1), (object(), 1),
    ],
)  # fmt: skip
def test_rows_of_batches_of_any_kind(batch, rows):
    assert streams.batch_size(batch) == rows


# i.i.d.


def test_a_very_long_stream_costs_nothing_until_it_is_read(data):
    stream = iid_stream(data, batch_size=4, rounds=10**12)
    assert len(list(itertools.islice(stream, 3))) == 3
    assert next(stream.row_blocks(5)).shape == (5, 4)


# Sorted


@quick
@given(
    y=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    batch_size=st.integers(1, 8),
    data=st.data(),
)
def test_sorted_streams_keep_the_order_within_a_class(y, batch_size, data):
    batch_size = min(batch_size, len(y))
    rounds = data.draw(st.integers(1, len(y) // batch_size))
    X = np.arange(len(y), dtype=float)[:, np.newaxis]
    stream = sorted_stream(X, y, batch_size=batch_size, rounds=rounds)
    expected = sorted(range(len(y)), key=lambda i: (y[i], i))[: rounds * batch_size]
    assert all_rows(stream).ravel().tolist() == expected
    sent = np.concatenate([batch.y for batch in stream])
    assert (np.diff(sent) >= 0).all()
    np.testing.assert_array_equal(all_rows(stream), all_rows(stream))


def test_sorted_streams_say_how_many_rounds_there_can_be(data):
    with pytest.raises(ValueError, match="rounds is 6, but 40 rows make at most 5 batches of 7"):
        sorted_stream(data, batch_size=7, rounds=6)
    with pytest.raises(ValueError, match="batch_size must be at most the number of rows, 40"):
        sorted_stream(data, batch_size=41, rounds=1)
    assert len(list(sorted_stream(data, batch_size=7, rounds=5))) == 5
    assert len(list(sorted_stream(data, batch_size=40, rounds=1))) == 1


# Both


@pytest.mark.parametrize("make", [iid_stream, sorted_stream])
def test_a_dataset_is_taken_as_it_is(data, make):
    assert make(data, batch_size=2, rounds=3).data is data
    with pytest.raises(TypeError, match="y must be left out when X is a Dataset"):
        make(data, data.y, batch_size=2, rounds=3)
    with pytest.raises(TypeError, match="y is missing"):
        make(data.X, batch_size=2, rounds=3)


@pytest.mark.parametrize("make", [iid_stream, sorted_stream])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 2.5}, TypeError),
        ({"rounds": -1}, ValueError),
        ({"rounds": None}, TypeError),
    ],
)
def test_bad_sizes_name_the_argument(data, make, change, error):
    with pytest.raises(error, match=f"^{next(iter(change))} must be an integer"):
        make(data, **{"batch_size": 2, "rounds": 3, **change})


def test_a_bad_seed_names_the_argument(data):
    with pytest.raises(TypeError, match=r"^seed must be an integer"):
        iid_stream(data, batch_size=2, rounds=3, seed=None)


def test_descriptions(data):
    assert repr(data) == "<Dataset: 40 rows x 3 features, 4 classes, float64>"
    assert repr(Batch(data, [0, 1])) == f"<Batch: 2 rows of {data!r}>"
    stream = iid_stream(data, batch_size=2, rounds=3, seed=9)
    assert repr(stream) == f"<i.i.d. (seed 9) stream: 3 batches of 2 from {data!r}>"
    stream = sorted_stream(data, batch_size=2, rounds=3)
    assert repr(stream) == f"<sorted stream: 3 batches of 2 from {data!r}>"
    assert repr(IndexedStream(data, [[0]])) == f"<indexed stream: 1 batches of 1 from {data!r}>"


# Epochs


@quick
@given(
    st.integers(1, 40), st.integers(1, 45), st.integers(1, 3),
    st.sampled_from(["rows", "chunks", False]), st.integers(1, 9), st.integers(1, 7),
)  # fmt: skip
def test_every_row_once_in_each_epoch(n, batch_size, epochs, shuffle, chunk_size, max_rounds):
    data = Dataset(np.zeros((n, 1)), np.zeros(n, int))
    stream = streams.epoch_stream(
        data, batch_size=batch_size, epochs=epochs, shuffle=shuffle, chunk_size=chunk_size, seed=3
    )
    batches = [batch.rows.tolist() for batch in stream]
    assert len(batches) == len(stream) == stream.rounds
    per_epoch = len(batches) // epochs
    sent = [row for rows in batches for row in rows]
    orders = [sent[e * n : (e + 1) * n] for e in range(epochs)]
    assert all(sorted(order) == list(range(n)) for order in orders)
    assert all(len(rows) == batch_size for i, rows in enumerate(batches) if (i + 1) % per_epoch)
    if shuffle is False:
        assert orders == [list(range(n))] * epochs
    assert [rows.tolist() for block in stream.row_blocks(max_rounds) for rows in block] == batches
    for t in {1, len(batches), len(batches) + 1, per_epoch}:
        rest = stream.from_round(t)
        assert [batch.rows.tolist() for batch in rest] == batches[t - 1 :]
        assert len(rest) == len(batches) - t + 1
    later = stream.from_round(len(batches)).from_round(1)
    assert [batch.rows.tolist() for batch in pickle.loads(pickle.dumps(later))] == batches[-1:]


def test_epochs_are_shuffled_and_seeded(data):
    def orders(**options):
        stream = streams.epoch_stream(data, batch_size=40, **options)
        return [batch.rows.tolist() for batch in stream]

    first, second = orders(epochs=2)
    assert first != second != list(range(40))
    assert orders(epochs=1) == [first]
    assert orders(seed=1) != [first]
    # eight chunks of two rows are mixed
    chunks = orders(shuffle="chunks", chunk_size=2)[0]
    mixed = [{row // 2 for row in chunks[i : i + 16]} for i in range(0, 40, 16)]
    assert [len(some) for some in mixed] == [8, 8, 4]
    with pytest.raises(ValueError, match="shuffle must be 'rows', 'chunks' or False"):
        orders(shuffle=True)
    with pytest.raises(ValueError, match="t must be at most 2, one more than the stream's rounds"):
        streams.epoch_stream(data, batch_size=40).from_round(3)


def test_any_stream_goes_on_from_a_round(data):
    for stream in (
        iid_stream(data, batch_size=3, rounds=9, seed=1),
        sorted_stream(data, batch_size=3, rounds=9),
    ):
        assert np.array_equal(all_rows(stream.from_round(4)), all_rows(stream)[3:])
        assert len(stream.from_round(10)) == len(list(stream.from_round(10))) == 0


def test_a_run_over_epochs_is_its_rounds(data, tmp_path):
    """Batches of two sizes, by run and by observe; cut short, saved, continued; regret."""
    stream = streams.epoch_stream(data, batch_size=7, epochs=3, seed=2)
    problem, ball = fw.SoftmaxRegression(3, 4), fw.RowL1Ball((4, 3), 2.0)
    whole, loop = fw.ORGFW(problem, ball), fw.ORGFW(problem, ball)
    result = whole.run(stream)
    losses = [loop.observe(batch).loss for batch in itertools.islice(stream, 8)]
    loop.save(tmp_path / "learner")
    loop = fw.ORGFW.load(tmp_path / "learner")
    losses += loop.run(stream.from_round(loop.t)).losses.tolist()
    assert losses == result.losses.tolist()
    assert np.array_equal(loop.play(), result.decision)
    assert result.gradient_evaluations == 2 * 3 * 40
    best = fw.best_fixed_decision(problem, ball, data)
    by_rows, by_batches = (fw.regret(result, best, s) for s in (stream, list(stream)))
    np.testing.assert_allclose(by_rows, by_batches, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "classes", [["dog", "cat", "cow"], [2.5, -1.0, 0.0], [True, False], np.array(["b", "a"], "O")]
)
def test_labels_of_any_kind_are_numbered(classes):
    """Runs are those of the numbers; a label that nobody told of leaves the learner as it is."""
    rng = np.random.default_rng(0)
    names = np.unique(np.asarray(classes))
    y = rng.integers(names.size, size=(5, 8))
    X = rng.normal(size=(5, 8, 3))
    stream = fw.LabelledStream([*zip(X, names[y], strict=True)], classes)
    assert stream.classes.tolist() == names.tolist()
    problem, ball = fw.SoftmaxRegression(3, names.size), fw.RowL1Ball((names.size, 3), 2.0)
    one, other = (fw.ORGFW(problem, ball) for _ in range(2))
    for _ in range(2):
        one.run(stream)
        other.run([*zip(X, y, strict=True)])
        assert np.array_equal(one.play(), other.play())
    wrong = fw.LabelledStream([(X[0], names[y[0]]), (X[1], names[y[1]])], ["dog", "horse"])
    with pytest.raises(ValueError, match=r"y has the label .* not among the classes"):
        one.run(wrong)
    assert np.array_equal(one.play(), other.play())


@pytest.mark.parametrize(
    ("classes", "message"),
    [(["a"], "two labels or more"), ([0.0, np.nan], "without NaN"), ([None, "a"], "of one kind"),
     ([["a", "b"]], "a list of labels"), ("ab", "a list of labels")],
)  # fmt: skip
def test_classes_that_cannot_be_used(classes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fw.LabelledStream([], classes)
