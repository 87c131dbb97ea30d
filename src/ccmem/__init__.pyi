"""Public names, one import per name; type checkers and :mod:`ccmem.registry` read this file."""

from ccmem import fleet as fleet
from ccmem import layers as layers
from ccmem import metrics as metrics
from ccmem import models as models
from ccmem import ncl as ncl
from ccmem import plots as plots
from ccmem import readout as readout
from ccmem import river as river
from ccmem import torch as torch
from ccmem.app.watching import watch as watch
from ccmem.core.events import Event as Event
from ccmem.fleet.merge import merge as merge
from ccmem.io import streams as streams
from ccmem.io.graphml import write_graphml as write_graphml
from ccmem.io.persistence import CheckpointError as CheckpointError
from ccmem.io.persistence import from_bytes as from_bytes
from ccmem.io.persistence import load as load
from ccmem.io.persistence import save as save
from ccmem.layers.patch import PatchLayer as PatchLayer
from ccmem.layers.shape import ShapeLayer as ShapeLayer
from ccmem.layers.stack import Stack as Stack
from ccmem.layers.window import WindowLayer as WindowLayer
from ccmem.models.adaptive import AdaptiveCCM as AdaptiveCCM
from ccmem.models.artc2a import ARTC2A as ARTC2A
from ccmem.models.artmap import ARTMAP as ARTMAP  # learns from labels
from ccmem.models.ccm import CCM as CCM
from ccmem.models.fscl import FrequencySensitiveWTA as FrequencySensitiveWTA
from ccmem.models.fuzzy_art import FuzzyART as FuzzyART
from ccmem.models.gas import NeuralGas as NeuralGas
from ccmem.models.gmm import IncrementalGMM as IncrementalGMM
from ccmem.models.gng import GrowingNeuralGas as GrowingNeuralGas
from ccmem.models.lvq import LVQ as LVQ  # learns from labels
from ccmem.models.soinn import SOINN as SOINN
from ccmem.models.som import SelfOrganisingMap as SelfOrganisingMap
from ccmem.models.wta import IncrementalWTA as IncrementalWTA
from ccmem.paper import datasets as datasets
from ccmem.paper import experiments as experiments
from ccmem.readout.discriminant import DiscriminantClassifier as DiscriminantClassifier
from ccmem.readout.gated import GatedMLP as GatedMLP
from ccmem.readout.mlp import OnlineMLP as OnlineMLP
from ccmem.readout.modal import ModalClassifier as ModalClassifier
from ccmem.readout.per_block import Gated as Gated

__version__: str
__all__: list[str]
