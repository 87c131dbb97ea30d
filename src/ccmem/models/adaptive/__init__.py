"""CCM without thresholds: blocks told apart by two witnesses, and a bound on units.

Two witnesses look at the stream. *Columns* (:mod:`ccmem.models.adaptive.columns`) see every column in its own units, by
the level and the spread of batches of 20 rows: magnitude, one column among many, noise that grows. *Direction*, told
here, sees the mean of x / |x|: weak changes in many columns at once, as between tasks of images, after fewer samples.
Both answer for ``false_alarm_every``. Columns bring about a change by themselves. Direction does once a column is
certain of a shift, too, however far that column is used to wander; of 784 columns one always is. Which block it is,
both must agree on: a candidate fits a block if its direction and all its columns do.

A unit's prototype is a direction of length 1. A block knows the level and spread of its columns in the units of the
data, and that is what tells blocks apart, also in ``predict``, where directions cannot.

A block carries a signature of its inputs (:mod:`ccmem.models.adaptive.signature`); the stream carries a mean w of
recent inputs, of weight lambda each (more while a block is young), and a reference r, the mean of about the last
thousand. For a sample with direction u = x / |x|:

    calm        w <- w + lambda (u - w); if w is beyond its limit from the signature of the block in use or from r, be
                suspicious from here on; otherwise signature and r take u in, and so does a slot; how far w is from both
                is learned, for the limits to come
    suspicious  nothing is learned; u goes into the mean of a batch (20 samples) and into the candidate c, the mean of
                all since suspicion began. A full batch that does not fit the block in use (its signature or r) counts
                one more, one that fits it better than half of its own would counts one less; at none suspicion ends
                (or after ten batches, which widens the limits), and w becomes the mean of the last batch. At three or
                more, a column being certain too, there is a change, and r becomes c:
                if c fits no waiting block, a new block begins, its signature that of c, wandering as the one before
                until it knows better (but a block five times nearer to c than to all other blocks has wandered there);
                if c clearly fits one and there are five batches, that block is recalled; if in doubt, wait for
                another batch, up to ten, then recall the block that fits best if it fits at all likely

    learning    a block opens slots for samples that are far from all it has, until it has ``n_slots``; otherwise the
                most similar slot moves: M <- (M + v (u - M)) / |...|. After n wins v = 1 / (1 / v_0 + n / 2): a slot is
                the mean of what it won, the later half weighing more, however many samples there will be.

Suspicion uses samples from before it, each batch only its own, so that for independent samples the tests of a change
(recent mean, three batches) are independent if nothing changed, and their error rates multiply. They are set by
``false_alarm_every``: its square root is how many samples pass between two needless suspicions, its fourth root the
odds against a batch confirming one. One batch would thus do on paper, if two more were not good for tails heavier than
chi-square's, for batches that are waited for, and for bursts. Wandering is not independent from batch to batch, so its
part of every limit answers for ``false_alarm_every`` alone.

What this means for a stream:

* an outlier burst no longer than a batch changes no block: it touches two batches at most, the third fits again;
* a mixture of old tasks is a task of its own: it fits none of their signatures, so it gets a block, to be recalled
  when the mixture returns;
* cycles, drift and runs are learned: what a block has done before, or does little by little, is no change; what takes
  it further, and fast, is one. A block that never wandered and drifts away within a few thousand samples changes;
* an abrupt change is seen in a block that wanders, too, because r wanders with it;
* tasks that differ neither in the mean direction nor in level or spread of a column (in correlation only, say) are not
  told apart, nor are tasks that are nearer to each other than each wanders; a zero vector has no direction and is not
  learned by a slot, but its columns count;
* NaN is a missing reading: the row is filled with what is expected, and columns go by the readings they have. A column
  that falls silent for good is told as an event (:mod:`ccmem.models.adaptive.missing`).

With ``max_units`` a block goes on opening slots beyond ``n_slots``, wherever one has gathered ten times the
block's variance in dissimilarity; when the bound is reached, only blocks with less than their share of it may, and the
cheapest pair of a block that has more is merged for it (:mod:`ccmem.models.adaptive.merging`). When there are
as many blocks as units, what fits none is given to the nearest. Ties go to the lowest index everywhere.
"""

from ccmem.models.adaptive.model import AdaptiveCCM

__all__ = ["AdaptiveCCM"]
