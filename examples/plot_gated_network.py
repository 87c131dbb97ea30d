"""
A gated network
===============

A memory can keep a network from forgetting. For each block, the task pointer opens hidden units that belong only to
this block and closes all others. Tasks share no weight between hidden units, so they cannot disturb each other. This
is the CCM-MLP of the paper.
"""

# %%
# Five tasks of two digits arrive one after the other, with ten passes over each (a task has only about 250 images).
# The task of an image is never given. All ten classes are announced at once, so that each block learns to reject the
# classes that it never sees.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ccmem import CCM, GatedMLP, OnlineMLP, plots

images, digits = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, digits, test_size=0.3, random_state=0, stratify=digits)
tasks = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]

memory = CCM(n_slots=16, vigilance=0.93, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
networks = {
    "plain network": OnlineMLP(hidden_sizes=(80, 80), learning_rate=0.02, random_state=0),
    "gated network": GatedMLP(memory, hidden_sizes=(80, 80), gated_units=16, learning_rate=0.02, random_state=0),
}
R = {name: np.zeros((5, 5)) for name in networks}
rng = np.random.default_rng(0)
for i, task in enumerate(tasks):
    rows = np.flatnonzero(np.isin(y, task))
    for _ in range(10):
        chunk = rng.permutation(rows)
        for network in networks.values():
            network.partial_fit(X[chunk], y[chunk], classes=np.arange(10))
    for name, network in networks.items():
        right = network.predict(X_test) == y_test
        R[name][i] = [right[np.isin(y_test, t)].mean() for t in tasks]

gated = networks["gated network"]
print(gated.memory_.n_blocks_, "blocks")

# %%
# Accuracy on each task (columns) after learning each task (rows). The plain network knows only the last task.
names = [f"{a}, {b}" for a, b in tasks]
shown = {
    f"{name}: {matrix[-1].mean():.2f} at the end": np.where(np.tri(5, dtype=bool), matrix, np.nan)
    for name, matrix in R.items()
}
plots.task_matrices(shown, task_names=names)
