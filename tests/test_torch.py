"""TaskGate: equal to GatedMLP step by step, growth, devices, saving and loading with its memory; an MLP and a CNN."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

from ccmem import CCM, GatedMLP, IncrementalWTA

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

from ccmem.torch import TaskGate  # noqa: E402


def memory(**options):
    usual = {"n_slots": 2, "vigilance": 0.9, "alarm_limit": 1, "recall_limit": 0, "commit_limit": 1, "random_state": 0}
    return CCM(**usual | options)


def task_stream(n_tasks=5, n=24, width=8, seed=0):
    """Distant tasks, each with two close classes; the first task returns at the end."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_tasks, 2, width)) * 0.4 + np.eye(width)[:n_tasks, None] * 4
    tasks = np.repeat([*range(n_tasks), 0], n)
    labels = rng.integers(2, size=len(tasks))
    return centres[tasks, labels] + rng.normal(size=(len(tasks), width)) * 0.05, labels


class MLP(nn.Module):
    def __init__(self, memory, sizes=(9, 7), gated_units=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip((8, *sizes), (*sizes, 2), strict=True))
        self.gates = nn.ModuleList(
            TaskGate(memory, n, gated_units, layer=layer, random_state=0) for layer, n in enumerate(sizes)
        )

    def forward(self, x, blocks=None):
        z = x
        for layer, gate in zip(self.layers, self.gates, strict=False):
            z = gate(torch.relu(layer(z)), x, blocks=blocks)
        return self.layers[-1](z)


def train(net, X, labels, rate=0.1):
    """Train one pass with batch size 1, as in the paper, on the samples that the memory accepted."""
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for x, label in zip(X, labels, strict=True):
        block = net.gates[0].learn(x[None])
        if block >= 0:
            optimizer.zero_grad()
            functional.cross_entropy(net(x[None], block), label[None]).backward()
            optimizer.step()
        yield


def tensors(X, labels):
    return torch.from_numpy(X), torch.from_numpy(labels)


def test_agrees_with_gated_mlp_step_by_step():
    X, labels = task_stream()
    twin = GatedMLP(memory(), hidden_sizes=(9, 7), gated_units=3, undo=0, learning_rate=0.1, random_state=0)
    twin.partial_fit(X[:1], None, classes=[0, 1])
    net = MLP(memory()).double()
    net.gates[0].learn(torch.from_numpy(X[:1]))
    with torch.no_grad():
        for layer, W, b in zip(net.layers, twin.coefs_, twin.intercepts_, strict=True):
            layer.weight.copy_(torch.from_numpy(W.T))
            layer.bias.copy_(torch.from_numpy(b))
    for i, _ in enumerate(train(net, *tensors(X[1:], labels[1:]))):
        twin.learn_one(X[i + 1], labels[i + 1])
        for layer, W, b in zip(net.layers, twin.coefs_, twin.intercepts_, strict=True):
            np.testing.assert_allclose(layer.weight.detach().numpy(), W.T, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(layer.bias.detach().numpy(), b, rtol=1e-8, atol=1e-10)
    assert twin.memory_.n_blocks_ > 4
    for gate, own in zip(net.gates, twin.gates_, strict=True):
        np.testing.assert_array_equal(gate.gates.numpy()[: len(own)], own)
    net.eval()
    with torch.no_grad():
        alone = net(torch.from_numpy(X)).softmax(1).numpy()
        pool = net(torch.from_numpy(X), net.gates[0].route(torch.from_numpy(X), pool=True)).softmax(1).numpy()
    np.testing.assert_allclose(alone, twin.predict_proba(X), rtol=1e-7)
    np.testing.assert_allclose(pool, twin.predict_proba_pool(X), rtol=1e-7)


def test_the_seed_and_layer_alone_give_the_sets_of_gated_mlp():
    X, labels = task_stream()
    twin = GatedMLP(memory(), hidden_sizes=(9, 7), gated_units=3, random_state=0).partial_fit(X, labels)
    gate = TaskGate(memory(), 7, 3, layer=1, random_state=0)
    gate.learn(torch.from_numpy(X))
    np.testing.assert_array_equal(gate.gates.numpy(), twin.gates_[1])
    other = TaskGate(gate.memory, 7, 3, layer=1, random_state=1)
    other.take_gates(twin.gates_[1])
    np.testing.assert_array_equal(other.gates.numpy(), twin.gates_[1])


def test_save_load_and_go_on():
    X, labels = tensors(*task_stream())
    torch.manual_seed(0)
    net = MLP(memory()).double()
    for _ in train(net, X[:80], labels[:80]):
        pass
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    again = MLP(memory(n_slots=3, random_state=9)).double()
    shared = again.gates[0].memory
    again.load_state_dict(torch.load(file, weights_only=True))
    assert again.gates[0].memory is again.gates[1].memory is shared
    assert shared.n_slots == 2
    assert shared.n_samples_seen_ == 80
    for one, other in ((net, again), (again, net)):
        for _ in train(one, X[80:], labels[80:]):
            pass
        assert one.gates[0].memory.n_samples_seen_ >= other.gates[0].memory.n_samples_seen_
    for name, value in net.state_dict().items():
        if torch.is_tensor(value):
            assert torch.equal(value, again.state_dict()[name]), name
    np.testing.assert_array_equal(net.gates[0].memory.prototypes_, shared.prototypes_)
    assert net.gates[0].memory.events_ == shared.events_


def test_a_memory_that_has_learned_nothing_is_saved_too():
    gate = TaskGate(memory(), 6, 2, random_state=0)
    again = TaskGate(memory(n_slots=5), 6, 2, random_state=1)
    again.load_state_dict(gate.state_dict())
    assert again.memory.n_slots == 2
    assert torch.equal(again.seed, gate.seed)


def test_moves_between_devices_and_types():
    gate = TaskGate(memory(), 6, 2, random_state=0)
    gate.learn(torch.from_numpy(task_stream()[0]))
    moved = gate.to("meta")
    assert moved.gates.device.type == "meta"
    half = TaskGate(memory(), 6, 2, random_state=0).half()
    half.learn(torch.from_numpy(task_stream()[0]))
    assert half.gates.dtype == torch.bool
    assert half(torch.ones(1, 6, dtype=torch.half)).dtype == torch.half


class CNN(nn.Module):
    def __init__(self, memory):
        super().__init__()
        self.convolution = nn.Conv2d(1, 12, 3, padding=1)
        self.gate = TaskGate(memory, 12, 4, random_state=0)
        self.out = nn.Linear(12 * 36, 2)

    def forward(self, x, blocks=None):
        z = self.gate(torch.relu(self.convolution(x)), x, blocks=blocks)
        return self.out(z.flatten(1))


def test_a_small_cnn_keeps_what_it_learned_first():
    """Two tasks: horizontal or vertical bars in the upper left, then in the lower right."""
    rng = np.random.default_rng(0)
    images = np.zeros((2, 2, 1, 6, 6), np.float32)
    images[0, 0, 0, 0:2, 0:3], images[0, 1, 0, 0:3, 0:2] = 1, 1
    images[1, 0, 0, 3:6, 4:6], images[1, 1, 0, 4:6, 3:6] = 1, 1
    torch.manual_seed(0)
    net = CNN(memory(vigilance=0.6, n_slots=1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    labels = rng.integers(2, size=(2, 300))
    x = [
        torch.from_numpy(images[task, labels[task]] + rng.uniform(0, 0.1, (300, 1, 6, 6)).astype(np.float32))
        for task in (0, 1)
    ]
    y = [torch.from_numpy(labels[task]) for task in (0, 1)]

    def right(task):
        net.eval()
        with torch.no_grad():
            return float((net(x[task]).argmax(1) == y[task]).float().mean())

    for task in (0, 1):
        for start in range(0, 300, 10):
            net.train()
            batch = slice(start, start + 10)
            blocks = net.gate.learn(x[task][batch])
            ok = blocks >= 0
            if ok.any():
                optimizer.zero_grad()
                functional.cross_entropy(net(x[task][batch][ok], blocks[ok]), y[task][batch][ok]).backward()
                optimizer.step()
        assert right(task) > 0.95
    assert net.gate.memory.n_blocks_ == 2
    assert right(0) > 0.9


def test_training_without_rows_goes_by_the_block_in_use():
    gate = TaskGate(memory(), 6, 2, random_state=0)
    X = torch.from_numpy(task_stream()[0])
    gate.learn(X)
    expected = gate.gates[gate.memory.task_pointer_].double()
    assert torch.equal(gate(torch.ones(3, 6)).double(), expected.expand(3, 6))
    assert torch.equal(gate(torch.ones(len(X), 6), X).double(), expected.expand(len(X), 6))
    gate.eval()
    rows = gate(torch.ones(len(X), 6), X)
    assert torch.equal(rows, gate.gates[gate.route(X)].float())
    assert len(torch.unique(rows, dim=0)) > 2
    assert len(torch.unique(gate(torch.ones(len(X), 6), X, pool=True), dim=0)) == 1


def test_wrong_use_says_what_is_wrong():
    with pytest.raises(TypeError, match="task pointer"):
        TaskGate(IncrementalWTA(), 6, 2)
    with pytest.raises(ValueError, match="between 1 and n_units=6"):
        TaskGate(memory(), 6, 7)
    gate = TaskGate(memory(), 6, 2, random_state=0)
    blocks = gate.learn(torch.from_numpy(task_stream()[0]))
    with pytest.raises(ValueError, match="not the 6 units"):
        gate(torch.ones(2, 5))
    with pytest.raises(ValueError, match="leaving out rejected rows"):
        gate(torch.ones(len(blocks), 6), blocks=blocks)
    with pytest.raises(ValueError, match="not rows of 6 units"):
        gate.take_gates(np.ones((2, 6)))


def test_without_pytorch_the_error_names_the_command():
    code = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ImportError("no torch")
sys.meta_path.insert(0, NoTorch())
import ccmem.torch
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install torch" in result.stderr
