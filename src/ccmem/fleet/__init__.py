"""One memory per key (machine, user, sensor), on any engine.

:func:`step` is the core; ``ccmem fleet`` (:mod:`ccmem.fleet.local`), :mod:`ccmem.fleet.dask` and
:mod:`ccmem.fleet.spark` are thin shells around it and produce the same bytes as a plain loop over keys.
"""

from ccmem.fleet.step import Key, KeyedEvent, Member, Recipe, Rows, step

__all__ = ["Key", "KeyedEvent", "Member", "Recipe", "Rows", "step"]
