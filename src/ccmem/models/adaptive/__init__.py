"""CCM without thresholds: one statistic decides whether a stream has changed, returned or begun something new.

    model       the estimator                          constants   the fifteen constants of the rule
    state       arrays and the names of their rows

Compiled, per row or batch:                            Numpy, once per decision, merge or prediction:

    kernels     loops over rows                        start       first batches, lost columns, coordinates
    batches     sums of rows, features                 fit         how well blocks explain batches
    evidence    the statistic                          cold        new block, recall, onset
    windows     trimmed means, drift scales            bound       units that ``max_units`` merges
    hot         tests and learning of a batch          density     blocks of similar direction
    columns     centre and spread of columns
    slots       competition in the block in use

docs/adaptive_rule.md describes the rule on one page.
"""

from ccmem.models.adaptive.model import AdaptiveCCM

__all__ = ["AdaptiveCCM"]
