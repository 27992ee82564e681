"""What somebody new tries that cannot work: the message says what to do instead."""

import numpy as np
import pytest

import fastfw as fw

X, Y = np.eye(4), np.array([0, 1, 0, 1])
PROBLEM, BALL = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), 2.0)
NETWORK = fw.OneHiddenLayer(4, 2, 2)


def learner(**options):
    return fw.ORGFW(PROBLEM, BALL, **options)


CLASSES = {
    "learner, problem": lambda: fw.ORGFW(fw.SoftmaxRegression, BALL),
    "learner, set": lambda: fw.ORGFW(PROBLEM, fw.RowL1Ball),
    "offline": lambda: fw.SVRF(PROBLEM, fw.RowL1Ball),
    "product": lambda: fw.ProductSet({"block": fw.Simplex}),
    "base learner": lambda: fw.FTPL().on(fw.RowL1Ball, rounds=3),
    "comparator": lambda: fw.best_fixed_decision(PROBLEM, fw.RowL1Ball, X, Y),
    "gap": lambda: fw.frank_wolfe_gap(fw.SoftmaxRegression, BALL, np.zeros((2, 4)), (X, Y)),
}


@pytest.mark.parametrize("call", CLASSES.values(), ids=CLASSES)
def test_a_class_in_place_of_an_object(call):
    with pytest.raises(TypeError, match=r"must be an object, but it is the class (\w+); .* \1\("):
        call()


SWAPPED = {
    "learner": lambda: fw.ORGFW(BALL, PROBLEM),
    "offline": lambda: fw.SVRF(BALL, PROBLEM),
    "comparator": lambda: fw.best_fixed_decision(BALL, PROBLEM, X, Y),
    "gap": lambda: fw.frank_wolfe_gap(BALL, PROBLEM, np.zeros((2, 4)), (X, Y)),
}


@pytest.mark.parametrize("call", SWAPPED.values(), ids=SWAPPED)
def test_problem_and_set_in_the_wrong_order(call):
    with pytest.raises(TypeError, match=r"problem must have .* but a RowL1Ball has no loss"):
        call()


@pytest.mark.parametrize("problem", [PROBLEM, NETWORK], ids=["softmax", "network"])
@pytest.mark.parametrize("method", ["loss", "gradient", "sample_losses", "predict", "logits"])
def test_parameters_that_are_no_real_numbers(problem, method):
    data = (X, Y) if method in ("loss", "gradient", "sample_losses") else X
    for x, message in [
        (np.zeros(problem.shape, complex), "x must hold real numbers.* x.real"),
        (np.full(problem.shape, "a"), "x must hold real numbers"),
        (np.ma.masked_all(problem.shape), "x is a masked array"),
    ]:
        with pytest.raises(TypeError, match=message):
            getattr(problem, method)(x, data)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ((X, Y), r"one such pair: make it a list, \[\(X, y\)\]"),
        ([X, Y], r"one such pair: make it a list, \[\(X, y\)\]"),
        ("data.csv", "but it is a str"),
        ({"X": X, "y": Y}, "but it is a dict"),
        (fw.Dataset(X, Y), "but it is a Dataset"),
        (None, "but it is a NoneType"),
    ],
    ids=repr,
)
def test_what_is_no_stream(stream, message):
    with pytest.raises(TypeError, match=rf"stream must be an iterable of batches.*{message}"):
        learner().run(stream)


def test_progress_that_is_no_function():
    with pytest.raises(TypeError, match=r"progress must be a function .* True"):
        learner().run([(X, Y)], progress=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_to_do_about_overflow(dtype):
    """A wider dtype is advised where there is one."""
    big = (X * np.finfo(dtype).max).astype(dtype), Y
    played = learner(dtype=dtype, start=np.array([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]]))
    with pytest.raises(FloatingPointError, match="rescale the features") as refused:
        played.observe(big)
    assert ("float64" in str(refused.value)) == (dtype == np.float32)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fw.GroupL1Ball([[0, 1], [1]], 1.0), ValueError, "groups cannot be read"),
        (lambda: fw.GroupL1Ball([None, 1], 1.0), TypeError, "groups must hold numbers or strings"),
        (lambda: fw.GroupL1Ball("ab", 1.0), ValueError, r"groups must name .* shape \(\)"),
        (lambda: fw.FlowPolytope([([0], [1])], 0, 1), TypeError, r"edges\[0\]: nodes must be keys"),
        (lambda: fw.FlowPolytope([(0, 1)], [0], 1), TypeError, "source: nodes must be keys"),
    ],
)
def test_groups_and_nodes_that_cannot_be_told_apart(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_a_file_of_another_kind_is_not_said_to_be_safe_to_run(tmp_path):
    path = tmp_path / "learner"
    path.write_text("print('hello')")
    with pytest.raises(ValueError, match=r"is not an \.npz archive$"):
        fw.ORGFW.load(path)
