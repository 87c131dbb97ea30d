"""Errors of parts name the part, the file and the line."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import from_bytes, ncl
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.ncl.competitions import LABELLED
from ccmem.ncl.errors import explained

X = np.random.default_rng(0).random((30, 3))


def place(function):
    code = getattr(function, "py_func", function).__code__
    return rf"test_errors.py, line {code.co_firstlineno + 2}"


def learners(model):
    """Return every way to learn; each must report the error."""
    yield lambda: model().partial_fit(X)
    begun = model()
    yield lambda: [begun.learn_one(x) for x in X]


def check(model, message):
    for learn in learners(model):
        with pytest.raises(ncl.PartError, match=message):
            learn()


def test_nan():
    @ncl.neighbourhood
    def broken(state, settings, winner, unit):
        return np.nan if unit == 2 else 1.0

    class Model(ncl.Model):
        neighbourhood = broken

    check(Model, r"neighbourhood 'broken' \(test_errors.py, line \d+\) returned nan; it must return a finite number")


def test_nan_of_an_activation():
    @ncl.activation
    def broken(settings, x, prototype):
        return np.inf if x[0] > 0.9 else abs(x[0] - prototype[0])

    class Model(ncl.Model):
        activation = broken

    check(Model, "activation 'broken' .* returned inf")
    taught = Model().fit(X[X[:, 0] < 0.9])
    for read in (taught.predict, taught.transform):
        with pytest.raises(ncl.PartError, match=r"activation 'broken' .* returned inf"):
            read(X)


def test_a_loaded_classifier_names_the_activation_that_fails():
    @ncl.activation
    def broken(settings, x, prototype):
        return np.inf if x[0] > 0.9 else abs(x[0] - prototype[0])

    class Labelled(ncl.Classifier):
        activation = broken
        competition = ncl.label_veto
        growth = ncl.first_samples_of_class

        def __init__(self, units_per_class=2, *, learning_rate=0.1, rate_decay=1.0):
            self._assign(locals())

    low = X[X[:, 0] < 0.9]
    taught = Labelled().fit(low, low[:, 1] > 0.5)
    for model in (taught, from_bytes(taught.to_bytes(), classes=[Labelled])):
        with pytest.raises(ncl.PartError, match=r"activation 'broken' .* returned inf"):
            model.predict(X)


def test_a_problem_that_no_part_caused_stays_as_it_is():
    model = Plain().fit(X)
    problem = IndexError("elsewhere")
    assert explained(model, X[0], (), problem) is problem
    with pytest.raises(RuntimeError, match="the kernel of Plain could not learn a row"):
        model._grow(X[0])


class Plain(ncl.Model):
    """A model of parts of ccmem alone."""


def test_nan_of_a_rate():
    @ncl.rate
    def broken(state, settings, unit):
        return np.nan

    class Model(ncl.Model):
        rate = ncl.rate(lambda state, settings, unit: 0.1, hooks={"won": ncl.rates.count})

    assert Model().fit(X).n_units_ == 8

    class Broken(ncl.Model):
        rate = ncl.rate(broken.py_func if JIT_ENABLED else broken, hooks={"won": ncl.rates.count})

    check(Broken, "rate 'broken' .* returned nan")


def test_an_index_out_of_range():
    @ncl.neighbourhood
    def broken(state, settings, winner, unit):
        return state.rates[unit + 1_000]

    class Model(ncl.Model):
        neighbourhood = broken

    check(Model, rf"neighbourhood 'broken' \({place(broken)}\): IndexError")


def test_undeclared_state_and_parameters():
    @ncl.neighbourhood
    def no_state(state, settings, winner, unit):
        return state.fatigue[unit]

    @ncl.neighbourhood
    def no_parameter(state, settings, winner, unit):
        return settings.width

    class First(ncl.Model):
        neighbourhood = no_state

    class Second(ncl.Model):
        neighbourhood = no_parameter

    check(First, rf"\({place(no_state)}\): .*'fatigue'.*; declare it with state=")
    check(Second, rf"\({place(no_parameter)}\): .*'width'.*; declare it with parameters")


@pytest.mark.skipif(not JIT_ENABLED, reason="only a compiler complains")
def test_what_cannot_be_compiled():
    @ncl.neighbourhood
    def broken(state, settings, winner, unit):
        return float(str(unit) == "1" or len({unit: [winner], "a": 2}))

    @ncl.activation
    def expression(settings, x, prototype):
        return np.abs(x - prototype).sum()

    class Model(ncl.Model):
        neighbourhood = broken

    class Allocating(ncl.Model):
        activation = expression

    check(Model, r"neighbourhood 'broken' \(test_errors.py, line \d+\)")
    check(Allocating, "activation 'expression' .*allocates=True")

    class Allowed(ncl.Model):
        activation = ncl.activation(expression.py_func, allocates=True)

    np.testing.assert_array_equal(Allowed().fit(X).predict(X), IncrementalL1().fit(X).predict(X))


class IncrementalL1(ncl.Model):
    """The same model with ccmem's norm."""

    def __init__(self, n_units=8, *, p=1.0, learning_rate=0.1, rate_decay=1.0, init="first"):
        self.n_units, self.p, self.init = n_units, p, init
        self.learning_rate, self.rate_decay = learning_rate, rate_decay


def test_nothing_of_a_chunk_with_an_error_is_learned():
    @ncl.rate(hooks={"won": ncl.rates.count})
    def broken(state, settings, unit):
        return np.nan if state.counters[0] == 20 else 0.1

    class Model(ncl.Model):
        rate = broken

    model = Model().partial_fit(X[:10])
    before = model.prototypes_
    with pytest.raises(ncl.PartError):
        model.partial_fit(X[10:])
    assert model.n_samples_seen_ == 10
    np.testing.assert_array_equal(model.prototypes_, before)


def test_units_that_do_not_exist():
    @ncl.competition(whole=True)
    def beyond(state, settings, n):
        settings.best[0] = n + 5
        return min(n, 1)

    @ncl.neighbourhood(whole=True)
    def too_many(state, settings, n, k):
        return n + 1

    @ncl.growth(whole=True)
    def endless(state, settings, n, k):
        return True

    @ncl.update
    def spoil(state, settings, unit, x, amount):
        state.prototypes[unit, 0] = np.nan

    class Beyond(ncl.Model):
        competition = beyond

    class TooMany(ncl.Model):
        neighbourhood = too_many

    class Endless(ncl.Model):
        growth = endless

    class Spoilt(ncl.Model):
        update = spoil

    for model, message in (
        (Beyond, r"'beyond' .* selects 1 units, \[\d+\], but there are units 0 to"),
        (TooMany, r"'too_many' .* selects \d+ units, \[.*\], but there are units 0 to"),
        (Endless, "'endless' .* asks for more units than there is room for; .* unless n < settings.limit"),
        (Spoilt, r"'spoil' .* moved unit \d to \[ *nan .*\]; it must stay finite"),
    ):
        check(model, message)


def test_strengths_that_are_not_finite_and_values_that_are_missing():
    @ncl.neighbourhood(whole=True)
    def infinite(state, settings, n, k):
        settings.units[0], settings.strengths[0] = settings.best[0], np.inf
        return 1

    @ncl.activation
    def silent(settings, x, prototype):
        abs(x[0] - prototype[0])

    @ncl.activation(whole=True)
    def unset(state, settings, X, row, n):
        settings.h[:n] = np.nan

    class Infinite(ncl.Model):
        neighbourhood = infinite

    class Silent(ncl.Model):
        activation = silent

    class Unset(ncl.Model):
        activation = unset

    check(Infinite, r"'infinite' .* gives strengths \[inf\]; they must be finite")
    check(Silent, "'silent' .* returned None; it must return a finite number")
    check(Unset, r"'unset' .* set settings.h to \[nan.*\]; it must be finite")


def test_an_error_that_a_part_raises():
    @ncl.rate
    def broken(state, settings, unit):
        if state.wins[unit] > 2:
            raise ValueError("too many wins")
        return 0.1

    class Model(ncl.Model):
        rate = broken

    check(Model, r"rate 'broken' \(test_errors.py, line \d+\): ValueError: too many wins")


def test_the_label_of_the_row_that_failed_is_used():
    @ncl.neighbourhood(whole=True, **LABELLED)
    def broken(state, settings, n, k):
        settings.units[0], settings.strengths[0] = settings.best[0], np.nan if settings.label[0] == 1 else 0.5
        return 1

    class Model(ncl.Classifier):
        neighbourhood = broken

    with pytest.raises(ncl.PartError, match=r"'broken' .* gives strengths"):
        Model(units_per_class=1).fit(X, np.repeat(["a", "a", "b"], 10))
