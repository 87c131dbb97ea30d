"""Classifiers that learn online: networks, alone or gated by a memory's task pointer, and a discriminant readout."""

from ccmem.predictors.discriminant import DiscriminantClassifier
from ccmem.predictors.gated import GatedMLP
from ccmem.predictors.mlp import OnlineMLP

__all__ = ["DiscriminantClassifier", "GatedMLP", "OnlineMLP"]
