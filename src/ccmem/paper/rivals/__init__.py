"""Other learners for streams of tasks, run at equal memory for comparison.

One file each, all with ``partial_fit``, ``predict``, ``max_floats`` (budget of numbers held between samples) and
``n_floats_`` (numbers currently held). A learner that cannot run within its budget raises :class:`DoesNotFit`.
Information beyond labels is a constructor argument; ``told`` describes it in words.
"""

from ccmem.paper.rivals._base import DoesNotFit, Rival, TaskRival
from ccmem.paper.rivals.fine_tuning import FineTuning
from ccmem.paper.rivals.fly import FlyModel
from ccmem.paper.rivals.gdumb import GDumb
from ccmem.paper.rivals.icarl import ICaRL
from ccmem.paper.rivals.joint import Joint
from ccmem.paper.rivals.mnemonics import Mnemonics
from ccmem.paper.rivals.nearest_mean import NearestMean
from ccmem.paper.rivals.nearest_neighbour import NearestNeighbour
from ccmem.paper.rivals.replay import Replay
from ccmem.paper.rivals.streaming_lda import StreamingLDA

__all__ = [
    "DoesNotFit",
    "FineTuning",
    "FlyModel",
    "GDumb",
    "ICaRL",
    "Joint",
    "Mnemonics",
    "NearestMean",
    "NearestNeighbour",
    "Replay",
    "Rival",
    "StreamingLDA",
    "TaskRival",
]
