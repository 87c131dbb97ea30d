"""The live page: see a memory notice something, while it learns or after. ``ccmem.watch`` and ``ccmem watch`` open it.

Built on the standard library: a server for one page on loopback needs no framework, and so the page is there wherever
the library is. Learning is read from outside (:mod:`ccmem.watching.observer`) and never waits for it.
"""

from ccmem.watching.live import Watch, watch

__all__ = ["Watch", "watch"]
