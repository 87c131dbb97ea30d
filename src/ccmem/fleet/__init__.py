"""A fleet: one memory per key (machine, user, sensor), learned by whatever engine is at hand.

:func:`step` is all there is to it; ``ccmem fleet`` (:mod:`ccmem.fleet.local`), :mod:`ccmem.fleet.dask` and
:mod:`ccmem.spark` are thin shells around it, and give the same bytes as a plain loop over keys.
"""

from ccmem.fleet.step import Key, KeyedEvent, Member, Recipe, Rows, step

__all__ = ["Key", "KeyedEvent", "Member", "Recipe", "Rows", "step"]
