"""
Forgetting in a network and in a memory
=======================================

A network that is trained on one task after the other overwrites the weights of old tasks. A competitive memory moves
only the units that win, so units of old tasks stay unchanged. Both learn the same stream here: ten digits in five
tasks of two, in one pass.
"""

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from ccmem import CCM, ModalClassifier, plots

images, digits = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, digits, test_size=0.3, random_state=0, stratify=digits)
tasks = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]

memory = CCM(n_slots=12, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
models = {
    "multilayer perceptron": MLPClassifier((100,), solver="sgd", learning_rate_init=0.02, batch_size=1, random_state=0),
    "CCM, modal readout": ModalClassifier(memory),
}

# %%
# After every 20 samples, measure the accuracy on the test images of each task. Neither model knows the task of an
# image: the answer may be any of the ten digits.
curves = {name: [] for name in models}
changes = [0]
for task in tasks:
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(y, task)))
    changes.append(changes[-1] + len(rows))
    for start in range(0, len(rows), 20):
        chunk = rows[start : start + 20]
        for name, model in models.items():
            model.partial_fit(X[chunk], y[chunk], classes=np.arange(10))
            right = model.predict(X_test) == y_test
            curves[name].append([right[np.isin(y_test, t)].mean() for t in tasks])

# %%
# The network forgets a task as soon as the next one begins. The memory retains it.
steps = np.concatenate([np.minimum(np.arange(a, b, 20) + 20, b) for a, b in itertools.pairwise(changes)])
figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, curve) in zip(axes, curves.items(), strict=True):
    accuracy = np.array(curve)
    lines = {}
    for number, (a, b) in enumerate(tasks):
        since = steps > changes[number]
        lines[f"{a} and {b}"] = steps[since], accuracy[since, number]
    title = f"{name}: {accuracy[-1].mean():.2f} on average over all tasks at the end"
    plots.curves(lines, ylabel="accuracy", title=title, legend=False, ax=ax)
axes[0].legend(title="task", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
axes[1].set_xlabel("samples seen; a line begins with its task")
plt.show()
