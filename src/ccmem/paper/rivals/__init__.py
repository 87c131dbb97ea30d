"""Other learners for streams of tasks, run at equal memory for comparison.

All have ``partial_fit``, ``predict``, ``max_floats`` (budget of numbers held between samples) and ``n_floats_``
(numbers held now). A learner that cannot run within its budget raises :class:`DoesNotFit`. Information beyond labels is
a constructor argument; ``told`` describes it in words.
"""

from ccmem.paper.rivals._base import DoesNotFit, Rival
from ccmem.paper.rivals._network import TaskRival
from ccmem.paper.rivals.classical import NearestMean, NearestNeighbour, StreamingLDA
from ccmem.paper.rivals.fly import FlyModel
from ccmem.paper.rivals.icarl import ICaRL
from ccmem.paper.rivals.mnemonics import Mnemonics
from ccmem.paper.rivals.networks import FineTuning, GDumb, Joint, Replay

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
