"""CCM without thresholds: one statistic decides whether a stream has changed, returned or begun something new.

    constants   the fifteen constants of the rule      model     the estimator
    evidence    the statistic (compiled)               cold      once per alarm: new block, recall, onset (numpy)
    batches     sums of rows, features (compiled)      missing   gaps: counts, similarity of what is there (numpy)
    hot         windows and learning (compiled)        merge     shards of one stream become one memory (numpy)
    units       slots and their merging (compiled)     state     arrays and the names of their rows
    kernels     loops over rows (compiled)             windows   windows of batches against blocks (compiled)

docs/adaptive_rule.md describes the rule on one page.
"""

from ccmem.models.adaptive.model import AdaptiveCCM

__all__ = ["AdaptiveCCM"]
