"""CCM without thresholds: one statistic decides whether a stream has changed, returned or begun something new.

    model       the estimator                          constants   the fifteen constants of the rule
    state       arrays and the names of their rows

Compiled, per row or batch:                            Numpy, once per decision, merge or prediction:

    kernels     loops over rows                        start       first batches, lost columns, coordinates
    batches     sums of rows, features                 cold        new block, recall, onset
    evidence    the statistic                          bound       units that ``max_units`` merges
    windows     windows of batches against blocks      density     blocks of similar direction
    hot         tests and learning of a batch
    columns     centre and spread of columns
    slots       competition in the block in use

docs/adaptive_rule.md describes the rule on one page.
"""

from ccmem.models.adaptive.model import AdaptiveCCM

__all__ = ["AdaptiveCCM"]
