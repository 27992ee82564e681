"""Coercion to the canonical form, and the wording of what is refused."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fastfw import _checks
from layouts import LAYOUTS, read_only, unaligned
from sizes import memory_below, quick

FEATURE_DTYPES = [
    *("f8", "f4", "f2", ">f8", "<f4", ">f4", ">f2", "g"),
    *("u1", "i1", "i2", ">i4", "u4", "i8", ">u8", "?"),
]
LABEL_DTYPES = ["i8", ">i8", "u8", "i4", ">u4", "i2", "u1", "i1", "?"]


SAME_DTYPE = [LAYOUTS[name] for name in LAYOUTS if name not in ("big-endian", "list")]


def assert_canonical(a, dtype):
    assert type(a) is np.ndarray
    assert a.dtype == dtype
    assert a.dtype.isnative
    assert a.flags.c_contiguous
    assert a.flags.aligned
    assert not a.flags.writeable


@pytest.mark.parametrize("dtype", FEATURE_DTYPES, ids=str)
@quick
@given(data=st.data())
def test_features_have_one_form_whatever_the_dtype_and_layout(dtype, data):
    dtype = np.dtype(dtype)
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=5))
    values = data.draw(
        hnp.arrays(np.int8, shape, elements=st.integers(0, 100)).map(lambda a: a.astype(dtype))
    )
    layout = data.draw(st.sampled_from(SAME_DTYPE))
    wanted = data.draw(st.sampled_from([None, np.float32, np.float64, ">f4", "float64"]))
    given_array = layout(values)
    before = given_array.copy()

    found = _checks.features(given_array, dtype=wanted)

    native = dtype.newbyteorder("=")
    if wanted is not None:
        expected = np.dtype(wanted).newbyteorder("=")
    else:
        expected = native if native in (np.float64, np.float32) else np.dtype(np.float64)
    assert_canonical(found, expected)
    np.testing.assert_array_equal(found, values.astype(expected))
    np.testing.assert_array_equal(given_array, before)
    reusable = dtype == expected and given_array.flags.c_contiguous and given_array.flags.aligned
    assert np.shares_memory(found, given_array) == reusable


@quick
@given(data=st.data())
def test_labels_have_one_form_whatever_the_dtype_and_layout(data):
    dtype = np.dtype(data.draw(st.sampled_from(LABEL_DTYPES)))
    most = 1 if dtype.kind == "b" else 100
    values = np.array(data.draw(st.lists(st.integers(0, most), min_size=1, max_size=8)), dtype)
    layout = data.draw(
        st.sampled_from([np.array, unaligned, read_only, lambda a: np.repeat(a, 2)[::2]])
    )
    given_array = layout(values)

    found = _checks.labels(given_array, n_samples=len(values), n_classes=most + 1)

    assert_canonical(found, np.intp)
    np.testing.assert_array_equal(found, values.astype(np.intp))
    reusable = dtype == np.intp and given_array.flags.c_contiguous and given_array.flags.aligned
    assert np.shares_memory(found, given_array) == reusable


def test_lists_and_subclasses_become_plain_arrays():
    assert_canonical(_checks.features([[1, 2], [3, 4]]), np.float64)

    class Own(np.ndarray):
        pass

    own = np.ones((2, 2)).view(Own)
    found = _checks.features(own)
    assert_canonical(found, np.float64)
    assert np.shares_memory(found, own)


def test_a_memory_map_is_not_copied(tmp_path):
    path = tmp_path / "X.bin"
    np.arange(12.0).tofile(path)
    X = np.memmap(path, dtype=np.float64, mode="r", shape=(3, 4))
    found = _checks.features(X)
    assert_canonical(found, np.float64)
    assert np.shares_memory(found, X)
    np.testing.assert_array_equal(found, np.arange(12.0).reshape(3, 4))


@quick
@given(
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    dtype=st.sampled_from(["f8", ">f4", "f2"]),
    layout=st.sampled_from(SAME_DTYPE),
    data=st.data(),
)
def test_the_first_value_that_is_not_finite_is_named(shape, bad, dtype, layout, data):
    flat = data.draw(st.integers(0, shape[0] * shape[1] - 1))
    i, j = divmod(flat, shape[1])
    X = np.zeros(shape, dtype=dtype)
    X.reshape(-1)[flat:] = bad
    with pytest.raises(ValueError, match=rf"^X\[{i}, {j}\] is {bad}; X must be finite"):
        _checks.features(layout(X))


@pytest.mark.parametrize("at", [0, 65535, 65536, 131071, 199_999])
def test_large_data_is_searched_block_by_block(at):
    X = np.zeros((200, 1000), dtype=np.float32)
    X.reshape(-1)[at] = np.nan
    i, j = divmod(at, 1000)
    with pytest.raises(ValueError, match=rf"X\[{i}, {j}\] is nan"):
        _checks.features(X)
    X.reshape(-1)[at] = 0
    _checks.features(X)


def test_the_finiteness_check_needs_no_mask_of_the_data():
    X = np.zeros((2000, 1000))
    with memory_below(X.size / 10):
        _checks.features(X)


def test_values_beyond_the_wanted_dtype_are_named():
    X = np.zeros((3, 2))
    X[2, 1] = -1e300
    with pytest.raises(ValueError, match=r"A\[2, 1\] is -1e\+300, which float32 cannot hold"):
        _checks.features(X, name="A", dtype=np.float32)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((2, 3), dtype=object), TypeError, r"dtype is object.*astype"),
        ([["1.0", "a"]], TypeError, r"dtype is <U"),
        (np.zeros((2, 3), dtype=complex), TypeError, r"complex128; use X\.real"),
        (np.zeros((2, 3), dtype="M8[s]"), TypeError, r"real numbers"),
        (np.zeros((2, 3), dtype=[("a", "f8")]), TypeError, r"real numbers"),
        (np.ma.masked_array(np.zeros((2, 3)), mask=True), TypeError, r"masked.*X\.filled"),
        ([np.zeros(3), np.ma.masked_array(np.zeros(3), mask=True)], TypeError, r"X\[1\] is a mask"),
        ("text", TypeError, r"dtype is <U4"),
        (None, TypeError, r"dtype is object"),
        ([[1.0], [1.0, 2.0]], ValueError, r"X cannot be read"),
        (1.0, ValueError, r"shape \(\)"),
        (np.zeros(3), ValueError, r"shape \(3,\); a single sample is X\[np\.newaxis, :\]"),
        (np.zeros((2, 2, 2)), ValueError, r"shape \(2, 2, 2\)"),
        (np.zeros((0, 3)), ValueError, r"X is empty: its shape is \(0, 3\)"),
        (np.zeros((3, 0)), ValueError, r"X is empty: its shape is \(3, 0\)"),
        (np.zeros((2, 3)), ValueError, r"X has 3 columns, but 4 features are wanted"),
    ],
)
def test_features_say_what_is_wrong(X, error, message):
    with pytest.raises(error, match=message):
        _checks.features(X, n_features=4)


def test_sparse_features_say_how_to_go_on():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"sparse matrix.*X\.toarray\(\)"):
        _checks.features(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([0.0, 1.0], TypeError, r"dtype is float64.*np\.unique\(y, return_inverse=True\)"),
        (["cat", "dog"], TypeError, r"dtype is <U3.*np\.unique"),
        (np.array([0, 1], dtype=object), TypeError, r"dtype is object"),
        ([], ValueError, r"y is empty"),
        (1, ValueError, r"shape \(\)"),
        ([[0], [1]], ValueError, r"shape \(2, 1\); use y\.ravel\(\)"),
        ([[0, 1], [1, 0]], ValueError, r"np\.argmax\(y, axis=1\)"),
        ([0, 1, 2], ValueError, r"y has 3 labels, but 2 are wanted"),
        ([0, -1], ValueError, r"y\[1\] is -1; with 3 classes, labels must be 0, \.\.\., 2"),
        ([3, 0], ValueError, r"y\[0\] is 3; with 3 classes"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), ValueError, r"y\[1\] is 18446744073709551615"),
    ],
)
def test_labels_say_what_is_wrong(y, error, message):
    with pytest.raises(error, match=message):
        _checks.labels(y, n_samples=2, n_classes=3)


@pytest.mark.parametrize("y", [[0, -5], np.array([0, 2**63 + 1], dtype=np.uint64)])
def test_labels_need_no_number_of_classes_to_refuse_impossible_ones(y):
    with pytest.raises(ValueError, match=r"y\[1\] is .*; labels must be 0, 1"):
        _checks.labels(y)


@pytest.mark.parametrize(
    "value", [1, 0.5, np.float32(0.5), np.int8(3), Fraction(1, 2), np.array(2)]
)
def test_numbers_become_plain_floats(value):
    for check in (_checks.positive_float, _checks.non_negative_float):
        found = check(value, "radius")
        assert type(found) is float
        assert found == float(value)


NO_NUMBERS = {
    TypeError: [True, np.True_, "1", None, 1j, [1.0], np.ones(1), Decimal(1), object()],
    ValueError: [float("nan"), float("inf"), -float("inf"), -1.0, 10**400],
}


@pytest.mark.parametrize(
    ("value", "error"), [(value, error) for error, values in NO_NUMBERS.items() for value in values]
)
@pytest.mark.parametrize(
    "check", [_checks.positive_float, _checks.non_negative_float, _checks.fraction]
)
def test_what_is_no_number_or_out_of_range_is_refused(check, value, error):
    with pytest.raises(error, match=r"^radius must be a .*number"):
        check(value, "radius")


def test_zero_is_refused_only_where_it_must_be():
    assert _checks.non_negative_float(0, "tol") == 0.0
    assert _checks.fraction(0, "step") == 0.0
    with pytest.raises(ValueError, match=r"radius must be a positive number, but it is 0"):
        _checks.positive_float(0, "radius")
    with pytest.raises(ValueError, match=r"step must be a number in \[0, 1\], but it is 1.5"):
        _checks.fraction(1.5, "step")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_integers_become_plain_ints(value):
    found = _checks.positive_int(value, "rounds")
    assert type(found) is int
    assert found == 3


@pytest.mark.parametrize("value", [3.0, np.float64(3), True, np.True_, "3", None, [3]])
def test_what_is_not_an_integer_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"^rounds must be an integer >= 1, but it is"):
        _checks.positive_int(value, "rounds")


def test_a_float_with_an_integer_value_is_told_what_to_write():
    with pytest.raises(TypeError, match=r"600\.0 \(float\); write 600$"):
        _checks.positive_int(600.0, "batch_size")


def test_integers_below_the_minimum_are_value_errors():
    with pytest.raises(ValueError, match=r"rounds must be an integer >= 1, but it is 0"):
        _checks.positive_int(0, "rounds")
    with pytest.raises(ValueError, match=r">= 2, but it is 1"):
        _checks.positive_int(1, "n_classes", minimum=2)
    assert _checks.positive_int(0, "seed", minimum=0) == 0


def test_errors_stay_on_one_short_line():
    with pytest.raises(TypeError) as caught:
        _checks.positive_float(np.zeros((50, 50)), "radius")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (np.uint32(7), 7), ((1, 2), (1, 2)), ([3], (3,)), (np.array([4, 5]), (4, 5))],
)
def test_seeds_are_integers_or_sequences_of_them(value, expected):
    found = _checks.check_seed(value)
    assert found == expected
    np.random.default_rng(found)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        *(
            (value, TypeError)
            for value in (None, np.random.default_rng(0), 0.5, "0", True, (0, 1.5))
        ),
        *((value, ValueError) for value in (-1, (0, -1), ())),
    ],
)
def test_what_would_not_repeat_is_no_seed(value, error):
    with pytest.raises(error, match=r"^seed"):
        _checks.check_seed(value)


@pytest.mark.parametrize("dtype", ["f8", np.float32, ">f4", np.dtype("d")])
def test_float_dtypes_are_native(dtype):
    assert _checks.float_dtype(dtype).isnative


@pytest.mark.parametrize("dtype", [np.float16, "i4", "g", np.uint8])
def test_other_dtypes_are_value_errors(dtype):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        _checks.float_dtype(dtype)


def test_no_dtype_at_all_is_a_type_error():
    with pytest.raises(TypeError, match="dtype must be float64 or float32, but it is 'real'"):
        _checks.float_dtype("real")


def test_a_batch_is_a_pair_or_has_X_and_y():
    class Own:
        X, y = "features", "labels"

    assert _checks.batch_parts(("features", "labels")) == ("features", "labels")
    assert _checks.batch_parts(["features", "labels"]) == ("features", "labels")
    assert _checks.batch_parts(Own()) == ("features", "labels")


@pytest.mark.parametrize("batch", [None, 3, (1, 2, 3), [], np.zeros((2, 2)), "Xy"])
def test_anything_else_is_no_batch(batch):
    with pytest.raises(TypeError, match=r"^batch must be a pair \(X, y\)"):
        _checks.batch_parts(batch)
