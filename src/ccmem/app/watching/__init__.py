"""Live page that shows a memory detecting changes, during learning or later; see ``ccmem.watch`` and ``ccmem watch``.

The server needs only the standard library, so the page works wherever the library is installed. The model is read from
a separate thread (:mod:`ccmem.app.watching.observer`), and learning never waits for that thread.
"""

from ccmem.app.watching.live import Watch, watch

__all__ = ["Watch", "watch"]
