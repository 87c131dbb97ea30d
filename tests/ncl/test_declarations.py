"""Mistakes in a declaration are found at the decorator or the class, before anything is learned."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import ncl
from ccmem.kernels.jit import JIT_ENABLED

ONE = ncl.number(0.0)


def of_unit(state, settings, unit):
    return 0.1


def declared(**keywords):
    return lambda: ncl.rate(of_unit, **keywords)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ncl.rate(0.1), "ncl.rate makes a part of a function, not of 0.1"),
        (declared(parameter={}), "ncl.rate has no keyword parameter; it has whole, parameters, state"),
        (declared(parameters={"width": 1.0}), r"parameters\['width'\] is 1.0; it must be an ncl.Parameter"),
        (declared(parameters={"width": ncl.Parameter(-1.0, ONE)}), "has the default -1.0, which must be a number in"),
        (declared(parameters={"kind": ncl.Parameter("a", ncl.choice("a", "b"))}), "value == 'a'"),
        (declared(parameters={"units": ncl.Parameter(1.0, ONE)}), "declares 'units', which every model has"),
        (declared(state={"wins": ncl.Array("unit")}), "declares 'wins', which every model has"),
        (declared(state={"fatigue": "unit"}), r"state\['fatigue'\] must be ncl.Array"),
        (declared(state={"fatigue": ncl.Array("units")}), "axes one of 'unit', 'column', 'pair', 'one'"),
        (declared(scratch={"room": np.zeros(3)}), r"scratch\['room'\] must be a function of model and capacity"),
        (declared(hooks={"wins": of_unit}), "there is no hook 'wins', only after, won, start and place"),
        (
            declared(hooks={"won": lambda unit: None}),
            r"its hook 'won' takes \(unit\), but must take \(state, settings,",
        ),
        (lambda: ncl.activation(of_unit), r"takes \(state, settings, unit\), but must take \(settings, x, prototype\)"),
        (lambda: ncl.activation(lambda x, prototype: 0.0), "with whole=True: state, settings, X, row, n"),
        (lambda: ncl.activation(lambda x, settings, prototype: 0.0), r"must take \(settings, x, prototype\)"),
    ],
)
def test_a_declaration_names_what_is_wrong(declare, message):
    with pytest.raises(ncl.PartError, match=message):
        declare()


def test_the_message_names_file_and_line():
    line = of_unit.__code__.co_firstlineno
    with pytest.raises(ncl.PartError, match=rf"^rate 'of_unit' \(test_declarations.py, line {line}\): state"):
        ncl.rate(of_unit, state={"fatigue": "unit"})


@pytest.mark.skipif(not JIT_ENABLED, reason="plain Python prints")
def test_print_is_refused_where_it_would_not_work():
    def prints(state, settings, unit):
        print(unit)
        return 0.1

    with pytest.raises(ncl.PartError, match="print does not work in compiled functions; set NUMBA_DISABLE_JIT=1"):
        ncl.rate(prints)


@pytest.mark.parametrize(
    ("base", "attributes", "message"),
    [
        (ncl.Model, {"rate": 0.1}, "Own.rate is 0.1; it must be a function decorated with ncl.rate"),
        (ncl.Model, {"rate": of_unit}, "Own.rate is of_unit; it must be a function decorated"),
        (ncl.Model, {"competition": ncl.hebbian}, "Own.competition is update 'hebbian'"),
        (ncl.Model, {"neighborhood": ncl.ranks}, "Own.neighborhood is neighbourhood 'ranks'"),
        (ncl.Classifier, {"neighborhood": ncl.signed}, "Own.neighborhood is neighbourhood 'signed'"),
        (ncl.Model, {"competition": ncl.label_veto}, "which compares labels: derive from ncl.Classifier"),
        (ncl.Model, {"growth": ncl.by_parameter("by", a=ncl.unmatched, b=ncl.rates)}, "Own.growth is ccmem.ncl.rates"),
    ],
)
def test_a_class_names_what_is_wrong(base, attributes, message):
    with pytest.raises(ncl.PartError, match=message):
        type("Own", (base,), attributes)


def test_an_own_init_takes_what_the_parts_read():
    for base in (ncl.Model, ncl.Classifier):
        with pytest.raises(ncl.PartError, match=r"Own.__init__ lacks learning_rate, rate_decay, which its parts read"):
            type("Own", (base,), {"__init__": lambda self, p, init, n_units, units_per_class: None})

    class Fixed(ncl.Model):
        """A class attribute replaces a parameter."""

        p, init = 1.0, "first"
        rate = ncl.harmonic

        def __init__(self, n_units=2):
            self.n_units = n_units

    assert Fixed().fit(np.eye(3)).get_params() == {"n_units": 2}


def test_a_classifier_without_init_and_with_default_parts():
    class Own(ncl.Classifier):
        """Own label alone competes."""

    X = np.random.default_rng(0).random((40, 2))
    y = np.where(X[:, 0] > 0.5, "right", "left")
    model = Own(3).fit(X, y)
    assert model.unit_labels_.tolist().count("left") == 3
    assert model.score(X, y) > 0.8
    assert list(model.get_params()) == sorted(["units_per_class", "p", "learning_rate", "rate_decay"])
    with pytest.raises(TypeError, match=r"ncl.Classifier is a base class"):
        ncl.Classifier()


@pytest.mark.parametrize("base", [ncl.Model, ncl.Classifier])
def test_a_class_statement_sets_defaults_that_subclasses_inherit(base):
    class Slow(base, learning_rate=0.01):
        """Moves slowly."""

    class Slower(Slow, rate_decay=0.5):
        pass

    assert Slow().learning_rate == Slower().learning_rate == 0.01
    assert Slower().rate_decay == 0.5
    assert Slower(learning_rate=0.2).learning_rate == 0.2
    assert base.__name__ == "Model" or Slower().fit(np.eye(3), [0, 1, 0]).memory_.learning_rate == 0.01
    with pytest.raises(ncl.PartError, match="Own sets speed; its parts have"):
        type("Own", (base,), {}, speed=1.0)
    with pytest.raises(ncl.PartError, match=r"Own sets learning_rate=2.0; it must be a number in \(0.0, 1.0\]"):
        type("Own", (base,), {}, learning_rate=2.0)


def test_the_docstring_lists_parameters_with_values_default_and_meaning():
    class Own(ncl.Model, learning_rate=0.01):
        """Moves slowly."""

        neighbourhood = ncl.ranks

    assert Own.__doc__.startswith("Moves slowly.\n\nParameters\n----------\nn_units : a whole number >= 1, default=8\n")
    assert "\nlearning_rate : a number in (0.0, 1.0], default=0.01\n    Fraction of the distance" in Own.__doc__
    assert "\nreach : a number in (0.0, inf), default=2.0\n    Ranks over which" in Own.__doc__


def test_sizes_may_be_positional():
    map_ = type("Own", (ncl.Model,), {"neighbourhood": ncl.grid, "parameters": ncl.GRID})(2, 3, topology="hexagonal")
    assert (map_.rows, map_.columns) == (2, 3)
    with pytest.raises(TypeError, match="Own: got an unexpected keyword argument 'colums'; it has rows, columns, topo"):
        type(map_)(colums=3)
    with pytest.raises(TypeError, match="too many positional"):
        type(map_)(2, 3, "hexagonal")


def test_a_map_without_its_parameters():
    class Own(ncl.Model):
        neighbourhood = ncl.grid

    with pytest.raises(ncl.PartError, match=r"Own has no 'rows', which its parts need; write parameters = ncl.GRID"):
        Own().fit(np.eye(3))


def test_similarities_start_with_the_first_samples_too():
    @ncl.activation(similarity=True)
    def dot(settings, x, prototype):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] * prototype[i]
        return -total

    class Own(ncl.Model):
        activation = dot

    assert Own(n_units=3).fit(np.eye(4)).n_units_ == 3


@pytest.mark.parametrize(
    "parts", [{}, {"competition": ncl.vigilant, "growth": ncl.unmatched, "parameters": {}}], ids=["first", "vigilant"]
)
def test_zero_rows_have_no_direction_and_are_counted_alone(parts):
    own = type("Own", (ncl.Model,), {"activation": ncl.cosine, "update": ncl.renormalising, **parts})
    X = np.vstack([np.zeros((2, 3)), np.eye(3), np.zeros((2, 3))])
    for model in (own(), own().plain()):
        assert model.learn_many(X).tolist() == [-1, -1, 0, 1, 2, -1, -1]
        assert (model.n_samples_seen_, model.n_units_) == (7, 3)


def test_array_functions_and_a_competition_before_the_first_unit():
    @ncl.competition(whole=True, allocates=True)
    def sorting(state, settings, n):
        settings.best[0] = np.argsort(settings.h[:n])[0]  # would fail for n = 0
        return 1

    class Own(ncl.Model):
        competition = sorting

    X = np.random.default_rng(0).random((30, 2))
    np.testing.assert_array_equal(Own().fit(X).predict(X), ncl_default().fit(X).predict(X))


def ncl_default():
    return type("Default", (ncl.Model,), {})()
