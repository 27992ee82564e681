"""Comparisons: their numbers against plain NumPy, their tables, files and picture."""

import math
from dataclasses import replace

import numpy as np
import pytest

import fastfw as fw
from experiment_cases import blobs, rows_of
from fastfw.experiments import (
    METHODS,
    PRESETS,
    compare,
    format_table,
    regret_figure,
    write_regret_csv,
    write_regret_png,
    write_summary_csv,
)
from fastfw.experiments.methods import (
    NETWORK_METHODS,
    NETWORK_PRESETS,
    default_methods,
    default_preset,
    find_methods,
)
from fastfw.experiments.results import standard_error
from fastfw.experiments.tables import REGRET_COLUMNS, SUMMARY_COLUMNS
from fastfw.learners import TABLE
from fastfw.learners._method import Constants

ROUNDS, BATCH, RADIUS, TRIALS, SEED = 7, 5, 2.0, 3, 11


@pytest.fixture(scope="module")
def data():
    return blobs(48, 6)


def problem_for(X, radius=RADIUS):
    """Return the problem of these tests, and its set."""
    problem = fw.SoftmaxRegression(n_features=X.shape[1], n_classes=3)
    return problem, fw.RowL1Ball(shape=(3, X.shape[1]), radius=radius)


@pytest.fixture(scope="module")
def result(data):
    return compare(data, rounds=ROUNDS, batch_size=BATCH, radius=RADIUS, trials=TRIALS, seed=SEED)


def sample_losses(W, X, y):
    """Return the softmax loss of every row, in plain NumPy."""
    Z = X @ np.asarray(W, dtype=np.float64).T
    top = Z.max(axis=1)
    return np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - Z[np.arange(len(y)), y]


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["stochastic", "adversarial"])
def test_every_method_can_be_repeated_by_hand(data, setting):
    X, y = data
    problem, ball = problem_for(X)
    result = compare(
        data, setting=setting, methods=[method.name for method in METHODS],
        rounds=ROUNDS, batch_size=BATCH, radius=RADIUS, trials=2, seed=SEED,
    )  # fmt: skip
    for run in result.methods:
        options = dict(run.method.options)
        options |= {"rounds": ROUNDS} if run.method.rounds else {}
        options |= {"sub_batch_size": 4} if run.method.meta else {}
        for trial in range(2):
            learner = getattr(fw, run.method.learner)(
                problem, ball, seed=(SEED + trial, 1), **options
            )
            shape = {"batch_size": BATCH, "rounds": ROUNDS}
            stream = fw.sorted_stream(X, y, **shape)
            if setting == "stochastic":
                stream = fw.iid_stream(X, y, **shape, seed=SEED + trial)
            again = learner.run(stream)
            np.testing.assert_array_equal(run.losses[trial], again.losses)
            assert run.lmo_calls[trial] == again.lmo_calls
            assert run.gradient_evaluations[trial] == again.gradient_evaluations
            assert run.nonzeros[trial] == np.count_nonzero(again.decision)
            if run.method.meta:
                assert run.inner_steps == str(learner.inner_steps)
    if setting == "adversarial":  # trials differ by what the methods draw, and by nothing else
        same = {run.method.name: np.array_equal(*run.losses) for run in result.methods}
        assert not any(same[run.method.name] for run in result.methods if run.method.meta)
        assert all(same[name] for name in ("orgfw", "osfw", "ofw", "oaw", "regularized-ofw"))


def test_regret_is_loss_minus_the_best_decision_s(data, result):
    X, y = data
    problem, ball = problem_for(X)
    best = fw.best_fixed_decision(problem, ball, X, y, tol=1e-6)
    fixed = sample_losses(best.decision, X, y)
    assert result.comparator.n_rows == len(y)
    assert result.comparator.value == pytest.approx(fixed.mean(), rel=1e-12)
    assert 0 <= result.comparator.gap <= 1e-6 * result.comparator.value
    for trial in range(TRIALS):
        stream = fw.iid_stream(X, y, batch_size=BATCH, rounds=ROUNDS, seed=SEED + trial)
        baseline = [fixed[batch.rows].mean() for batch in stream]
        for run in result.methods:
            expected = np.cumsum(run.losses[trial] - baseline)
            np.testing.assert_allclose(run.regret[trial], expected, rtol=1e-11, atol=1e-13)


def test_suboptimality_is_that_of_the_last_decision(data, result):
    X, y = data
    problem, ball = problem_for(X)
    stream = fw.iid_stream(X, y, batch_size=BATCH, rounds=ROUNDS, seed=SEED)
    decision = fw.ORGFW(problem, ball, seed=SEED).run(stream).decision
    least = result.comparator.value
    expected = (sample_losses(decision, X, y).mean() - least) / (math.log(3) - least)
    assert result.methods[0].suboptimality[0] == pytest.approx(expected, rel=1e-11)
    assert np.all(result.methods[0].suboptimality > 0)


def test_adversarial_comparator_is_for_the_rows_played(data):
    X, y = data
    result = compare(
        data, setting="adversarial", methods=["orgfw"], rounds=5, batch_size=4, radius=1.0, trials=2
    )
    rows = np.argsort(y, kind="stable")[:20]
    problem, ball = problem_for(X, radius=1.0)
    best = fw.best_fixed_decision(problem, ball, X[rows], y[rows], tol=1e-6)
    assert result.comparator.n_rows == 20
    assert result.comparator.value == best.value
    fixed = sample_losses(best.decision, X[rows], y[rows]).reshape(5, 4).mean(axis=1)
    run = result.methods[0]
    expected = np.cumsum(run.losses[0] - fixed)
    np.testing.assert_allclose(run.regret[0], expected, rtol=1e-11, atol=1e-13)
    # No method here draws anything itself, and all trials send the same batches.
    np.testing.assert_array_equal(run.losses[0], run.losses[1])


def test_float32_learns_in_float32_and_is_judged_in_float64(data, result):
    single = compare(
        data,
        rounds=ROUNDS,
        batch_size=BATCH,
        radius=RADIUS,
        trials=TRIALS,
        seed=SEED,
        dtype="float32",
    )
    assert single.dtype == "float32"
    assert single.comparator.value == result.comparator.value
    for one, two in zip(single.methods, result.methods, strict=True):
        np.testing.assert_allclose(one.losses, two.losses, rtol=2e-5)
        assert not np.array_equal(one.losses, two.losses)


def test_accepts_a_dataset_and_a_path(tmp_path, data):
    X, y = data
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    options = {"rounds": 3, "batch_size": 4, "trials": 1, "methods": ["orgfw"]}
    by_path = compare(tmp_path / "blobs.npz", **options)
    by_name = compare(str(tmp_path / "blobs.npz"), **options)
    as_dataset = compare(fw.Dataset(X, y), **options)
    assert by_path.data == by_name.data == str(tmp_path / "blobs.npz")
    assert as_dataset.data == "data"
    for other in (by_name, as_dataset):
        np.testing.assert_array_equal(by_path.methods[0].regret, other.methods[0].regret)


def test_defaults_fit_the_size_of_unknown_data(data):
    X, y = data
    few = compare((X[:30], y[:30]), setting="adversarial", trials=1, methods=["osfw"])
    assert (few.rounds, few.batch_size, few.radius) == (30, 1, 8.0)
    assert few.comparator.n_rows == 30


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"setting": "stochastik"}, ValueError, "did you mean 'stochastic'"),
        ({"methods": ["ogrfw"]}, ValueError, "did you mean 'orgfw'"),
        ({"methods": ["adam"]}, ValueError, "unknown method 'adam'; known: orgfw"),
        ({"methods": []}, ValueError, "methods: none given"),
        ({"methods": ["orgfw", "ORGFW"]}, ValueError, "'orgfw' is given twice"),
        ({"radius": 1e308}, ValueError, "rescale X or take a smaller radius"),
        ({"radius": 1e20, "dtype": "float32"}, ValueError, "overflow in float32"),
        ({"dtype": "int8"}, ValueError, "float64 or float32"),
        ({"preset": "mnist"}, ValueError, "did you mean 'mnist-"),
        ({"inner_steps": 0}, ValueError, "inner_steps"),
        ({"tol": 0.0}, ValueError, "tol"),
        ({"setting": "adversarial", "rounds": 7, "batch_size": 7}, ValueError, "rounds"),
    ],
)
def test_bad_arguments_are_named(data, options, error, message):
    with pytest.raises(error, match=message):
        compare(data, **options)


@pytest.mark.parametrize("stray", [50, 99_999, 10**12])
@pytest.mark.parametrize("form", [tuple, lambda pair: fw.Dataset(*pair)])
def test_stray_labels_are_refused(stray, form):
    y = np.arange(50) % 3
    y[7] = stray
    message = rf"y\[7\] is {stray}, but y has 50 labels, 4 of them distinct; .*np\.unique\(y, ret"
    with pytest.raises(ValueError, match=message):
        compare(form((np.ones((50, 2)), y)))


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        compare((np.ones((3, 2)), [0, 0, 0]))


@pytest.mark.parametrize(
    ("options", "schedules"),
    [
        ({"preset": "theory"}, {}),
        ({"preset": "mnist-stochastic"}, {"step": (1.0, 1.0), "momentum": (1.0, 2 / 3)}),
        ({"preset": "cifar10-stochastic"}, {"step": (0.1, 2 / 3), "momentum": (1.0, 1 / 2)}),
        ({"step": fw.power_schedule(0.5, 1.0)}, {"step": (0.5, 1.0)}),
        ({"momentum": fw.power_schedule(1.0, 0.5)}, {"momentum": (1.0, 0.5)}),
    ],
)
def test_constants_reach_the_learners(data, options, schedules):
    X, y = data
    sizes = {"methods": ["osfw"], "rounds": ROUNDS, "batch_size": BATCH, "radius": RADIUS}
    result = compare(data, trials=1, **options, **sizes)
    problem, ball = problem_for(X)
    stream = fw.iid_stream(X, y, batch_size=BATCH, rounds=ROUNDS, seed=0)
    schedules = {name: fw.power_schedule(*pair) for name, pair in schedules.items()}
    again = fw.OSFW(problem, ball, **schedules).run(stream)
    np.testing.assert_array_equal(result.methods[0].losses[0], again.losses)
    assert result.preset == options.get("preset", "theory")


def test_a_function_is_a_schedule(data, tmp_path):
    """What it does cannot be told from its name, so that nothing is kept of it."""
    options = {"methods": ["orgfw"], "rounds": 3, "batch_size": 2, "trials": 1}
    result = compare(data, step=lambda t: 0.5, folder=tmp_path, **options)
    assert result.methods[0].step == "custom"
    assert [path.name[:10] for path in tmp_path.iterdir()] == ["comparator"]


def test_presets_of_other_constants_reach_the_learners(data):
    X, y = data
    result = compare(
        data, setting="adversarial", preset="cifar10-adversarial", inner_steps=5,
        sub_batch_size=None, methods=["rofw", "morgfw", "metafw"], rounds=ROUNDS,
        batch_size=BATCH, radius=RADIUS, trials=1,
    )  # fmt: skip
    problem, ball = problem_for(X)
    schedule = fw.power_schedule
    common = {"rounds": ROUNDS, "seed": (0, 1)}
    meta = {**common, "inner_steps": 5, "base": fw.FTPL(100.0), "step": schedule(0.1, 1.0)}
    learners = (
        fw.RegularizedOFW(problem, ball, step=schedule(0.05, 1.0), scale=100.0, **common),
        fw.MORGFW(problem, ball, momentum=schedule(0.5, 0.5), **meta),
        fw.MetaFrankWolfe(problem, ball, momentum=schedule(1.0, 0.5), **meta),
    )
    stream = fw.sorted_stream(X, y, batch_size=BATCH, rounds=ROUNDS)
    for run, learner in zip(result.methods, learners, strict=True):
        np.testing.assert_array_equal(run.losses[0], learner.run(stream).losses)
    assert [run.scale for run in result.methods] == ["100.0"] * 3
    assert [run.sub_batch_size for run in result.methods] == ["", "all", "all"]


def test_presets_are_sound():
    for preset in (*PRESETS.values(), *NETWORK_PRESETS.values()):
        for name, constants in preset.items():
            (method,) = find_methods([name], TABLE)
            assert method.name == name
            assert isinstance(constants, Constants)
            assert (constants.epoch_length is None) != method.offline
            assert (constants.momentum is None) or method.momentum
            assert (constants.scale is None) or method.scale
    for preset in NETWORK_PRESETS.values():
        assert list(preset) == [method.name for method in NETWORK_METHODS]
    assert default_preset("cifar10", "stochastic") == "cifar10-stochastic"
    assert default_preset("my.npz", "stochastic") == "theory"
    assert default_preset("mnist", "adversarial") in PRESETS


# --- table of methods -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["orgfw", "ORGFW", "Or-Gfw", "or_gfw", " orgfw "])
def test_method_names_are_understood_loosely(name):
    assert find_methods([name])[0].learner == "ORGFW"


def test_table_of_methods_is_sound():
    names = [name for method in TABLE for name in (method.name, *method.aliases)]
    assert len(set(names)) == len(names)
    assert len({method.label for method in TABLE}) == len(TABLE)
    for method in TABLE:
        assert hasattr(fw, method.learner)
        for name in (method.name, method.label, *method.aliases):
            assert find_methods([name], TABLE) == (method,)
    for setting in ("stochastic", "adversarial"):
        assert default_methods(setting)


# --- bounds -----------------------------------------------------------------------------------


def bounded(data, **options):
    options = {"rounds": 6, "batch_size": 4, "radius": RADIUS, "trials": 2, **options}
    return compare(data, bounds=True, **options).methods


def test_bound_of_orgfw_is_theorem_1(data):
    X, y = data
    (run,) = bounded(data, methods=["orgfw"])
    problem, ball = problem_for(X)
    best = fw.best_fixed_decision(problem, ball, X, y, tol=1e-6)
    noise = fw.theory.softmax_noise_bounds(X, 3, RADIUS)
    t = np.arange(1, 7)
    expected = fw.theory.orgfw_regret_bound(
        t,
        smoothness=problem.smoothness(X),
        diameter=ball.diameter,
        gradient_noise=noise.gradient_noise,
        value_noise=noise.value_noise,
        initial_gap=math.log(3) - best.value + best.gap,
    )
    np.testing.assert_array_equal(run.bound.rounds, t)
    np.testing.assert_allclose(run.bound.values, expected, rtol=1e-13)
    assert (run.bound.theorem, run.no_bound) == ("Theorem 1", "")
    assert np.all(run.regret <= run.bound.values)


def test_bound_of_morgfw_is_theorem_2(data):
    for setting in ("stochastic", "adversarial"):
        (run,) = bounded(data, methods=["morgfw"], setting=setting)
        assert run.bound.theorem == "Theorem 2"
        assert run.bound.rounds.tolist() == [6]
        assert np.all(run.final_regret <= run.bound.values)
    (whole,) = bounded(data, methods=["morgfw"], setting="adversarial", sub_batch_size=None)
    assert whole.bound.values[0] < run.bound.values[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"methods": ["orgfw"], "setting": "adversarial"}, "Theorem 1 is for the stochastic"),
        ({"methods": ["orgfw"], "momentum": fw.power_schedule(1.0, 2 / 3)}, "--preset theory"),
        ({"methods": ["morgfw"], "inner_steps": 5}, "as many inner steps as rounds"),
        ({"methods": ["morgfw"], "preset": "mnist-adversarial"}, "Theorem 2 wants step"),
        ({"methods": ["metafw"]}, "the paper bounds ORGFW and MORGFW"),
        ({"methods": ["ofw"]}, "the paper bounds ORGFW and MORGFW"),
    ],
)
def test_no_bound_where_none_applies(data, options, reason):
    (run,) = bounded(data, **options)
    assert run.bound is None
    assert reason in run.no_bound
    assert "\n" not in run.no_bound


# --- table ------------------------------------------------------------------------------------


def test_table_shows_every_method(result):
    lines = format_table(result).splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("method"))
    assert lines[header].split("  ")[0].strip() == "method"
    for column in ("regret (nats)", "ms/round", "suboptimality", "nonzeros"):
        assert column in lines[header]
    body = lines[header + 2 : header + 2 + len(result.methods)]
    assert {len(line) for line in lines[header : header + 2 + len(result.methods)]} == {
        len(lines[header])
    }
    for line, run in zip(body, result.methods, strict=True):
        label, mean, sign, error, ms, suboptimality, nonzeros = line.split()
        assert label == run.method.label
        assert sign == "+-"
        final = run.final_regret
        assert float(mean) == pytest.approx(final.mean(), abs=0.51 * 10.0 ** -_decimals(mean))
        assert float(error) == pytest.approx(
            final.std(ddof=1) / math.sqrt(TRIALS), abs=0.51 * 10.0 ** -_decimals(error)
        )
        assert float(ms) == pytest.approx(run.ms_per_round, rel=1e-2)
        assert float(suboptimality) == pytest.approx(run.suboptimality.mean(), rel=1e-2)
        assert float(nonzeros) == pytest.approx(run.nonzeros.mean(), abs=0.051)
    assert lines[header].endswith("nonzeros of 18")
    assert lines[-6] == "+-: standard error of the mean over the trials"
    assert "comparator: best fixed decision for all 48 training rows" in lines[-5]
    assert f"relative gap {result.comparator.relative_gap:.1e}" in lines[-4]
    difference = result.methods[1].final_regret - result.methods[0].final_regret
    assert "constants with a guarantee" in lines[-2]
    assert "with a guarantee" not in format_table(replace(result, setting="adversarial"))
    mean, error = lines[-3].rpartition("OSFW ")[2].split(" +- ")
    assert float(mean) == pytest.approx(difference.mean(), abs=0.51 * 10.0 ** -_decimals(mean))
    assert float(error) == pytest.approx(
        standard_error(difference), abs=0.51 * 10.0 ** -_decimals(error)
    )


@pytest.mark.parametrize(("radius", "inside"), [(0.5, False), (1e3, True)])
def test_table_says_what_it_can_of_test_data_and_of_the_radius(radius, inside):
    X, y = blobs(48, 6)
    X = np.concatenate([X, X])  # with either of two labels: no radius is too large
    split = fw.datasets.Split(X, np.concatenate([y, (y + 1) % 3]), *blobs(10, 6, seed=1))
    options = {"rounds": 3, "batch_size": 5, "trials": 2, "radius": radius}
    result = compare(split, methods=["orgfw"], momentum=fw.power_schedule(1, 2 / 3), **options)
    (run,), problem = result.methods, problem_for(X, radius)
    for trial, accuracy in enumerate(run.test_accuracy):
        learner = fw.ORGFW(*problem, momentum=fw.power_schedule(1, 2 / 3), seed=(trial, 1))
        stream = fw.iid_stream(X, split[1], batch_size=5, rounds=3, seed=trial)
        wanted = problem[0].accuracy(learner.run(stream).decision, *split[2:])
        assert accuracy == wanted
    table = format_table(result)
    assert "test accuracy\n" in table
    assert f"  {run.test_accuracy.mean():.4f}\n" in table
    assert "guarantee" not in table
    assert result.comparator.inside == inside
    assert ("lies inside the set: larger radii have the same best loss" in table) == inside


def _decimals(text):
    return len(text.partition(".")[2])


def test_one_trial_has_no_standard_error(data):
    result = compare(data, rounds=2, batch_size=2, trials=1)
    table = format_table(result)
    assert "+-" not in table
    assert "nan" not in table
    assert "1 trial of 2 rounds" in table


# --- files ------------------------------------------------------------------------------------


def test_regret_csv_holds_the_curves_bit_for_bit(tmp_path, result):
    path = tmp_path / "regret.csv"
    write_regret_csv(result, path)
    rows = rows_of(path)
    assert tuple(rows[0]) == REGRET_COLUMNS
    assert ",".join(REGRET_COLUMNS) == "trial,method,round,loss,regret,seconds"
    assert len(rows) == TRIALS * len(result.methods) * ROUNDS
    by_key = {(int(r["trial"]), r["method"], int(r["round"])): r for r in rows}
    assert len(by_key) == len(rows)
    for run in result.methods:
        for trial in range(TRIALS):
            for t in range(ROUNDS):
                row = by_key[trial + 1, run.method.name, t + 1]
                assert float(row["loss"]) == run.losses[trial, t]
                assert float(row["regret"]) == run.regret[trial, t]
                assert float(row["seconds"]) == run.seconds[trial, t]
    assert b"\r" not in path.read_bytes()


def test_summary_csv_agrees_with_the_curves(tmp_path, result):
    path = tmp_path / "summary.csv"
    write_summary_csv(result, path)
    rows = rows_of(path)
    assert tuple(rows[0]) == SUMMARY_COLUMNS
    assert [row["method"] for row in rows] == [run.method.name for run in result.methods]
    for row, run in zip(rows, result.methods, strict=True):
        assert float(row["regret"]) == run.regret[:, -1].mean()
        assert float(row["regret_standard_error"]) == standard_error(run.regret[:, -1])
        assert float(row["ms_per_round"]) == run.ms_per_round
        assert int(row["rounds"]) == ROUNDS
        assert int(row["seed"]) == SEED
        assert float(row["comparator_loss"]) == result.comparator.value


# --- picture ----------------------------------------------------------------------------------


def test_figure_names_axes_units_and_methods(result):
    figure = regret_figure(result)
    by_round, by_time = figure.axes
    assert by_round.get_xlabel() == "round"
    assert "nats" in by_round.get_ylabel()
    assert "(ms)" in by_time.get_xlabel()
    assert "nats per round" in by_time.get_ylabel()
    legend = by_round.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["ORGFW", "OSFW"]
    for axes in figure.axes:
        assert len(axes.collections) == 2  # a band each
        styles = {(line.get_linestyle(), line.get_marker()) for line in axes.get_lines()}
        assert len(styles) == 2
    for line, run in zip(by_round.get_lines(), result.methods, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, ROUNDS + 1))
        np.testing.assert_array_equal(line.get_ydata(), run.regret.mean(axis=0))


def test_figure_of_very_short_runs(tmp_path, data):
    X, y = data
    np.savez(tmp_path / "odd $name_.npz", X=X, y=y)
    result = compare(tmp_path / "odd $name_.npz", rounds=1, batch_size=2, trials=1)
    write_regret_png(result, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
