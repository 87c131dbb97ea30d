"""Framework for competitive models composed from parts.

>>> import numpy as np
>>> from ccmem import ncl
>>> class KMeans(ncl.Model):
...     "Online k-means: the nearest unit becomes the mean of its samples."
...     rate = ncl.harmonic
>>> KMeans(n_units=2).fit(np.array([[0.0], [9.0], [1.0], [2.0]])).prototypes_
array([[1.],
       [9.]])
"""

from ccmem.core.parameters import boolean, choice, integer, number, optional
from ccmem.ncl.activations import cosine, euclidean, fuzzy_minimum, p_norm
from ccmem.ncl.classifier import Classifier
from ccmem.ncl.competitions import (
    conscience,
    frequency_sensitive,
    fuzzy_vigilant,
    k_nearest,
    label_veto,
    nearest,
    vigilant,
)
from ccmem.ncl.errors import PartError
from ccmem.ncl.graph import GraphModel
from ccmem.ncl.growths import SEED, SEEDED, first_samples, first_samples_of_class, unmatched
from ccmem.ncl.model import Model
from ccmem.ncl.neighbourhoods import GRID, grid, positions, ranks, signed, winners
from ccmem.ncl.parts import (
    Array,
    Parameter,
    activation,
    by_parameter,
    competition,
    growth,
    neighbourhood,
    per_unit,
    rate,
    update,
)
from ccmem.ncl.rates import constant, decaying, harmonic, scheduled
from ccmem.ncl.updates import STEPS, adam, fuzzy, hebbian, renormalising, rmsprop

__all__ = ["Array", "Classifier", "GraphModel", "Model", "Parameter", "PartError", "by_parameter", "per_unit"]
__all__ += ["activation", "competition", "growth", "neighbourhood", "rate", "update"]
__all__ += ["boolean", "choice", "integer", "number", "optional"]
__all__ += ["cosine", "euclidean", "fuzzy_minimum", "p_norm"]
__all__ += ["conscience", "frequency_sensitive", "fuzzy_vigilant", "k_nearest", "label_veto", "nearest", "vigilant"]
__all__ += ["GRID", "constant", "decaying", "grid", "harmonic", "positions", "ranks", "scheduled", "signed", "winners"]
__all__ += ["STEPS", "adam", "fuzzy", "hebbian", "renormalising", "rmsprop"]
__all__ += ["SEED", "SEEDED", "first_samples", "first_samples_of_class", "unmatched"]
