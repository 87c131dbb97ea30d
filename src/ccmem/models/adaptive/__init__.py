"""CCM without thresholds: blocks told apart by two witnesses, and a bound on units.

*Columns* see every column in its own units, by the level and the spread of batches of 16 rows. *Direction* sees the
mean of x / |x|: weak changes in many columns at once. A stream that no longer fits the block in use makes the memory
suspicious; batches confirm or dispel that; what is confirmed is a waiting block that returns, or a new one. The rule,
step by step, is in docs/adaptive_rule.md, the arithmetic in the modules:

    kernels     what happens to every sample          model     the estimator
    signature   direction: limits of what fits        change    suspicion and confirmation by direction
    batches     rows become levels and spreads        decision  what a change leads to: a new block, or a recall
    columns     what levels and spreads say           state     the arrays, and the numbers that are tuned
    waiting     blocks beside the latest batches      missing   readings that are not there
    onset       where a change began                  stored, upgrade   what files leave out, files of 0.1
    blindness   what it cannot notice at present      merging   units merge where they are bounded
    twin        the same in plain numpy, with columns_twin and units_twin
"""

from ccmem.models.adaptive.model import AdaptiveCCM

__all__ = ["AdaptiveCCM"]
