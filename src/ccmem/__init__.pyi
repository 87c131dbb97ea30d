"""THE list of what is public: one line a name, read by people, type checkers and :mod:`ccmem.registry`."""

from ccmem import datasets as datasets
from ccmem import experiments as experiments
from ccmem import fleet as fleet
from ccmem import layers as layers
from ccmem import metrics as metrics
from ccmem import models as models
from ccmem import plots as plots
from ccmem import predictors as predictors
from ccmem import river as river
from ccmem import streams as streams
from ccmem import torch as torch
from ccmem.fleet.merge import merge as merge
from ccmem.layers.patch import PatchLayer as PatchLayer
from ccmem.layers.stack import Stack as Stack
from ccmem.layers.window import WindowLayer as WindowLayer
from ccmem.memory import Event as Event
from ccmem.models.adaptive import AdaptiveCCM as AdaptiveCCM
from ccmem.models.artc2a import ARTC2A as ARTC2A
from ccmem.models.ccm import CCM as CCM
from ccmem.models.gmm import IncrementalGMM as IncrementalGMM
from ccmem.models.wta import IncrementalWTA as IncrementalWTA
from ccmem.persistence import CheckpointError as CheckpointError
from ccmem.persistence import from_bytes as from_bytes
from ccmem.persistence import load as load
from ccmem.persistence import save as save
from ccmem.predictors.discriminant import DiscriminantClassifier as DiscriminantClassifier
from ccmem.predictors.gated import GatedMLP as GatedMLP
from ccmem.predictors.mlp import OnlineMLP as OnlineMLP
from ccmem.readout import ModalClassifier as ModalClassifier
from ccmem.watching import watch as watch

__version__: str
__all__: list[str]
