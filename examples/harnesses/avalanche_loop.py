"""ccmem inside Avalanche: its benchmark hands out the experiences, its metrics judge.

Run with ``pip install avalanche-lib ccmem``.
"""

import torch

# Needed only where torchvision's compiled part does not load beside a torch built for another device: Avalanche imports
# torchvision at once, but nothing here uses these two operators.
try:
    import torchvision  # noqa: F401
except RuntimeError:
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import numpy as np
from avalanche.benchmarks import tensors_benchmark
from avalanche.evaluation.metrics import BWT, Accuracy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ccmem import CCM, ModalClassifier

images, digits = load_digits(return_X_y=True)
parts = train_test_split(images / 16, digits, test_size=0.3, random_state=0, stratify=digits)
X, X_test, y, y_test = (torch.as_tensor(part) for part in parts)


def pairs(X, y):
    """Five tasks of two digits."""
    return [(X[y // 2 == task], y[y // 2 == task]) for task in range(5)]


benchmark = tensors_benchmark(train_tensors=pairs(X, y), test_tensors=pairs(X_test, y_test), task_labels=[0] * 5)
memory = CCM(n_slots=12, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
model = ModalClassifier(memory)
backward_transfer = BWT()

for experience in benchmark.train_stream:
    now = experience.current_experience
    for image, digit, _ in experience.dataset:
        model.learn_one(image.numpy(), int(digit))
    accuracies = []
    for known in benchmark.test_stream[: now + 1]:
        pictures, labels, _ = zip(*known.dataset, strict=True)
        accuracy = Accuracy()
        accuracy.update(torch.as_tensor(model.predict(torch.stack(pictures).numpy())), torch.tensor(labels))
        accuracies.append(accuracy.result())
        backward_transfer.update(known.current_experience, accuracies[-1], initial=known.current_experience == now)

print(f"ACC {np.mean(accuracies):.3f}, BWT {np.mean([*backward_transfer.result().values()]):.3f}")
print(f"{model.memory_.n_blocks_} blocks")
