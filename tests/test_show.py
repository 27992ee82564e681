"""Results in notebooks, in data frames and as pictures."""

import pickle
import sys
import types

import numpy as np
import pytest
from matplotlib.figure import Figure

import fastfw as fw
from fastfw._plots import STYLES
from learner_cases import make_data, make_stream, problem_and_ball


@pytest.fixture(scope="module")
def results():
    X, y = make_data()
    problem, ball = problem_and_ball()
    stream = make_stream(rounds=12)
    run = fw.ORGFW(problem, ball).run(stream, checkpoints=[1, 6, 13])
    best = fw.best_fixed_decision(problem, ball, X, y)
    return {
        "RunResult": run,
        "FitResult": fw.SVRF(problem, ball, epoch_length=3).fit(X, y, iterations=9),
        "BestDecision": best,
        "RegretCurve": fw.regret(run, best, stream),
        "Trace": fw.trace(run, problem, ball, X, y, X_test=X, y_test=y, gap=True),
    }


def axes():
    return Figure().add_subplot()


def test_tables_for_notebooks(results):
    for name, result in results.items():
        table = result._repr_html_()
        assert table.startswith("<table>")
        assert table.endswith("</table>")
        assert name in table or name == "Trace"
    assert "12" in results["RunResult"]._repr_html_()
    assert results["Trace"]._repr_html_().count("<tr>") == 4
    # what arithmetic makes of a curve has no bounds to show
    assert (results["RegretCurve"] * 2)._repr_html_().startswith("<pre>")
    empty = fw.ORGFW(*problem_and_ball()).run([])
    assert empty._repr_html_().startswith("<table>")


def test_reprs_are_short(results):
    for name in ("RunResult", "FitResult", "BestDecision", "Trace"):
        assert repr(results[name]).startswith(f"<{name}: ")
        assert len(repr(results[name])) < 120
    best = results["BestDecision"]
    assert pickle.loads(pickle.dumps(best)).value == best.value


def test_results_without_pandas_say_how_to_get_it(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name in ("RunResult", "FitResult", "RegretCurve", "Trace"):
        with pytest.raises(ImportError, match="python -m pip install pandas"):
            results[name].to_pandas()


def test_data_frames(results, monkeypatch):
    """Columns and index, as given to pandas, or to what stands in for it."""
    try:
        import pandas
    except ImportError:
        pandas = types.SimpleNamespace(
            DataFrame=lambda columns, index: types.SimpleNamespace(
                columns=list(columns), index=index, to_numpy=lambda: np.array([*columns.values()]).T
            ),
            Index=lambda values, name: types.SimpleNamespace(name=name, values=values),
        )
        monkeypatch.setitem(sys.modules, "pandas", pandas)
    run, curve, trace = results["RunResult"], results["RegretCurve"], results["Trace"]
    frame = run.to_pandas()
    assert list(frame.columns) == ["loss", "seconds"]
    assert frame.index.name == "round"
    assert np.array_equal(frame.index.values, np.arange(1, 13))
    assert np.array_equal(frame.to_numpy(), np.array([run.losses, run.seconds]).T)
    assert results["FitResult"].to_pandas().index.name == "iteration"
    assert np.array_equal(curve.to_pandas().to_numpy(), np.array([curve.lower, curve.upper]).T)
    frame = trace.to_pandas()
    assert list(frame.columns) == ["seconds", "loss", "gap", "accuracy", "test accuracy"]
    assert np.array_equal(frame.index.values, [1, 6, 13])


def test_pictures(results):
    run, curve, trace = results["RunResult"], results["RegretCurve"], results["Trace"]
    ax = run.plot(axes(), label="ORGFW")
    mean, raw = ax.get_lines()
    assert np.array_equal(raw.get_ydata(), run.losses)
    assert mean.get_ydata()[-1] == pytest.approx(run.losses.mean())
    assert mean.get_label() == "ORGFW"
    ax = curve.plot(axes(), label="ORGFW")
    assert np.array_equal(ax.get_lines()[0].get_ydata(), curve.lower)
    assert ax.get_ylabel() == "regret"
    assert curve.plot(ax) is ax
    colours = [line.get_color() for line in ax.lines]
    assert colours == [style[0] for style in STYLES[:2]]  # told apart by the colour-blind
    ax = trace.plot(axes(), label="ORGFW")
    assert np.array_equal(ax.get_lines()[0].get_ydata(), trace.losses)
    assert results["FitResult"].plot(axes()).get_xlabel() == "iteration"


@pytest.mark.parametrize("kind", ["RunResult", "FitResult", "RegretCurve"])
def test_what_is_no_axes_is_refused(results, kind):
    with pytest.raises(TypeError, match=r"ax must be matplotlib axes.*'losses\.png'"):
        results[kind].plot("losses.png")


def test_pictures_without_matplotlib_say_how_to_get_it(results, monkeypatch):
    for name in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("RunResult", "FitResult", "RegretCurve", "Trace"):
        with pytest.raises(ImportError, match=r'pip install "fastfw\[plots\]"'):
            results[name].plot()


def test_new_axes_where_none_are_given(results):
    from matplotlib import pyplot

    ax = results["RegretCurve"].plot()
    assert ax.figure.number in pyplot.get_fignums()
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("problem", "words", "row"),
    [
        (fw.SoftmaxRegression(2, 2), "at most 0.25 above the least,", "least possible loss<"),
        (fw.OneHiddenLayer(2, 1, 2), "a local point of gap 0.25, no certificate", "certificate<"),
        (object(), "at most 0.25 above the least if convex,", "least possible loss, if convex<"),
    ],
)
def test_a_certificate_is_named_only_where_there_is_one(problem, words, row):
    best = fw.BestDecision(np.zeros(1), 0.5, 0.25, 0.0, 1, problem, 10)
    assert words in repr(best)
    assert row in best._repr_html_()
