"""A user's file with two models of about ten lines."""

from ccmem import ncl


@ncl.neighbourhood(parameters={"radius": ncl.Parameter(1.0, ncl.number(0.0))})
def chain(state, settings, winner, unit):
    gap = abs(unit - winner)
    return 1.0 / (1.0 + gap) if gap <= settings.radius else 0.0


class ChainMap(ncl.Model):
    """Units on a chain; the neighbours of the winner move with the winner."""

    neighbourhood = chain
    update = ncl.STEPS


@ncl.activation
def largest_gap(settings, x, prototype):
    largest = 0.0
    for i in range(x.shape[0]):
        largest = max(largest, abs(x[i] - prototype[i]))
    return largest


class OwnMetric(ncl.Classifier):
    """The nearest unit of the label, by the largest difference."""

    activation = largest_gap
    competition = ncl.label_veto
    growth = ncl.first_samples_of_class

    def __init__(self, units_per_class=2, *, learning_rate=0.1, rate_decay=1.0):
        self.units_per_class = units_per_class
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
