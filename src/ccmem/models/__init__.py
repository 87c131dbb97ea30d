"""The published models, one per file. ``__all__`` is THE list: tests, the command and the docs go by it."""

from ccmem.models.adaptive import AdaptiveCCM
from ccmem.models.artc2a import ARTC2A
from ccmem.models.ccm import CCM
from ccmem.models.gmm import IncrementalGMM
from ccmem.models.wta import IncrementalWTA

__all__ = ["ARTC2A", "CCM", "AdaptiveCCM", "IncrementalGMM", "IncrementalWTA"]
