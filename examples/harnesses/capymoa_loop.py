"""ccmem inside CapyMOA: its prequential evaluation, and its loop for online continual learning.

Run with ``pip install capymoa torch torchvision ccmem`` and a Java runtime.
"""

import torch

try:  # see avalanche_loop.py
    import torchvision  # noqa: F401
except RuntimeError:
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import numpy as np
from capymoa.base import SKClassifier
from capymoa.evaluation import prequential_evaluation
from capymoa.ocl.evaluation import ocl_train_eval_loop
from capymoa.stream import NumpyStream
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from ccmem import CCM, ModalClassifier

images, digits = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, digits, test_size=0.3, random_state=0, stratify=digits)


def new_model():
    """A fresh memory; CapyMOA's wrapper for scikit-learn takes any classifier of ccmem as it is."""
    memory = CCM(n_slots=12, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
    return ModalClassifier(memory)


# Prequential: predict each sample, then learn it.
order = np.argsort(y // 2, kind="stable")  # task after task
stream = NumpyStream(X[order], y[order], target_type="categorical")
results = prequential_evaluation(stream, SKClassifier(new_model(), stream.get_schema()))
print(f"prequential accuracy {results.cumulative.accuracy() / 100:.3f}")


# Online continual learning: the accuracy on every task after every task.
def tasks(X, y):
    """Five tasks of two digits, as the loop wants them."""
    rows = [y // 2 == task for task in range(5)]
    parts = [TensorDataset(torch.tensor(X[r], dtype=torch.float32), torch.tensor(y[r])) for r in rows]
    return [DataLoader(part, batch_size=16) for part in parts]


learner = SKClassifier(new_model(), stream.get_schema())
metrics = ocl_train_eval_loop(learner, tasks(X, y), tasks(X_test, y_test))
print(f"ACC {metrics.accuracy_final:.3f}, CapyMOA's backward transfer {metrics.backward_transfer:.3f}")
