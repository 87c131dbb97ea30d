"""Networks that learn online, one sample at a time: alone, or gated by a memory's task pointer."""

from ccmem.predictors.gated import GatedMLP
from ccmem.predictors.mlp import OnlineMLP

__all__ = ["GatedMLP", "OnlineMLP"]
