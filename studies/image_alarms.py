"""Count false alarms of AdaptiveCCM on five long tasks of images.

    python -m studies.image_alarms fashion-mnist mnist --streams 5 --data FOLDER

Every stream holds all training images, task by task, in random order within a task. The first alarm after a change
finds it; every other alarm is false. Of the figures in docs/adaptive_rule.md, the line of the rule in use is printed;
for another line, change the constant that it names.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from ccmem import AdaptiveCCM, datasets, streams
from ccmem.metrics import score_events

N_TASKS = 5


def main() -> None:
    """Print changes missed and false alarms of every data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["fashion-mnist", "mnist"])
    parser.add_argument("--streams", type=int, default=5)
    parser.add_argument("--data", default=os.environ.get("CCMEM_DATA"), help="folder of the image sets")
    args = parser.parse_args()
    for name in args.sets:
        data = datasets.load(name, folder=args.data)
        tasks = streams.class_tasks(data.y_train, N_TASKS)
        missed = false = rows = 0
        for seed in range(args.streams):
            rng = np.random.default_rng([seed, 1])
            parts = [rng.permutation(np.flatnonzero(np.isin(data.y_train, task))) for task in tasks]
            memory = AdaptiveCCM().partial_fit(data.X_train[np.concatenate(parts)])
            changes = np.cumsum([len(part) for part in parts])[:-1].tolist()
            score = score_events([event for event in memory.events_ if event.changes_block], changes)
            missed, false, rows = missed + score.missed, false + score.false_alarms, rows + memory.n_samples_seen_
        print(f"{name}: {missed} changes missed, {false} false alarms in {rows:,} rows", flush=True)


if __name__ == "__main__":
    main()
