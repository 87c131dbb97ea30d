"""
A few labels are enough
=======================

A memory learns prototypes from all samples and counts labels at the units that win. Few labels are therefore enough to
name the units. Here the share of labelled samples falls from all to two in a hundred.
"""

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ccmem import IncrementalWTA, ModalClassifier, plots

images, digits = load_digits(return_X_y=True)
images = images / 16
shares = [1.0, 0.5, 0.25, 0.1, 0.05, 0.03, 0.02]

# %%
# Two other models learn from the labelled samples only: the nearest labelled image, and a linear model.
scores = {"memory, 80 units": [], "nearest labelled image": [], "linear model": []}
for share in shares:
    trials = []
    for seed in range(5):
        X, X_test, y, y_test = train_test_split(images, digits, test_size=0.3, random_state=seed)
        known = np.random.default_rng(seed).random(len(y)) < share
        memory = ModalClassifier(IncrementalWTA(n_units=80, learning_rate=0.35, rate_decay=0.99), unlabeled=-1)
        memory.partial_fit(X, np.where(known, y, -1))
        nearest = KNeighborsClassifier(1).fit(X[known], y[known])
        linear = SGDClassifier(random_state=seed).fit(X[known], y[known])
        trials.append([model.score(X_test, y_test) for model in (memory, nearest, linear)])
    for name, values in zip(scores, np.transpose(trials), strict=True):
        scores[name].append(values)

# %%
# With one label in ten, the memory is almost as accurate as with all labels. The nearest labelled image is more
# accurate if there are many labels, but it stores all labelled images. With two labels in a hundred, both are equal.
# The linear model needs more labels.
lines = {name: (shares, values) for name, values in scores.items()}
plots.curves(lines, log=True, xlabel="share of samples with a label", ylabel="accuracy on new images")
