"""PyTorch, eager: rows shuffled once per epoch, batches are views of them."""

import time

import worker  # first: it keeps stdout for replies
import numpy as np
import torch
from torch import nn


def network(seed, columns):
    layers = []
    for weights, bias in worker.glorot(np.random.default_rng(seed), columns):
        linear = nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T))
            linear.bias.copy_(torch.from_numpy(bias))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def adam(parameters, **kind):
    return torch.optim.Adam(
        parameters,
        lr=worker.LEARNING_RATE,
        betas=(worker.BETA1, worker.BETA2),
        eps=worker.EPSILON,
        **kind,
    )


def faster_adam(trial):
    """The kind of Adam whose trial epoch is the shorter: fused, or one call per list."""
    kinds = [{"fused": True}, {"foreach": True}]
    return min(kinds, key=lambda kind: min(trial(kind) for _ in range(2)))


def steps(optimiser):
    return min(int(state["step"]) for state in optimiser.state.values())


def main():
    args = worker.arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    x_host, y_host = worker.training_rows(args)
    x, y = torch.from_numpy(x_host), torch.from_numpy(y_host)[:, None]
    criterion = nn.BCEWithLogitsLoss()

    def epoch(model, optimiser):
        start = time.perf_counter()
        order = torch.randperm(len(y))
        for xb, yb in zip(x[order].split(worker.BATCH), y[order].split(worker.BATCH)):
            optimiser.zero_grad()
            criterion(model(xb), yb).backward()
            optimiser.step()
        return time.perf_counter() - start

    def trial(kind):
        spare = network(args.seed, x.shape[1])
        return epoch(spare, adam(spare.parameters(), **kind))

    kind = faster_adam(trial)
    model = network(args.seed, x.shape[1])
    optimiser = adam(model.parameters(), **kind)

    def one_round():
        seconds = epoch(model, optimiser)
        with torch.no_grad():
            quality = worker.fit_quality(model(x)[:, 0].numpy(), y_host)
        return {"seconds": seconds, "units": 1, "steps": steps(optimiser), **quality}

    worker.serve(f"torch {torch.__version__}, {next(iter(kind))} Adam", one_round)


if __name__ == "__main__":
    main()
