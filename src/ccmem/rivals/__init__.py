"""Other learners for streams of tasks, run by us at equal memory: what a competitive memory has to be compared with.

One file each, all with ``partial_fit`` and ``predict``, ``max_floats`` (a budget of numbers held between samples) and
``n_floats_`` (what is held). One that cannot run in its budget raises :class:`DoesNotFit`. What a rival must be told
beside labels stands in its constructor; ``told`` says it in words.
"""

from ccmem.rivals._base import DoesNotFit, Rival, TaskRival
from ccmem.rivals.fine_tuning import FineTuning
from ccmem.rivals.fly import FlyModel
from ccmem.rivals.gdumb import GDumb
from ccmem.rivals.icarl import ICaRL
from ccmem.rivals.joint import Joint
from ccmem.rivals.mnemonics import Mnemonics
from ccmem.rivals.nearest_mean import NearestMean
from ccmem.rivals.nearest_neighbour import NearestNeighbour
from ccmem.rivals.replay import Replay
from ccmem.rivals.streaming_lda import StreamingLDA

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
