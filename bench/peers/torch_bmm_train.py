"""PyTorch: an ensemble of ten networks, each with its own shuffle, by batched products."""

import time

import worker  # first: it keeps stdout for replies
import numpy as np
import torch
from torch.nn import functional
from torch_train import adam, faster_adam, steps


def ensemble(seed, columns):
    """Per layer: weights (models x inputs x outputs) and biases (models x 1 x outputs)."""
    members = [
        worker.glorot(np.random.default_rng(seed + i), columns) for i in range(worker.ENSEMBLE)
    ]
    layers = []
    for same_layer in zip(*members):
        weights = torch.from_numpy(np.stack([w for w, _ in same_layer])).requires_grad_()
        bias = torch.from_numpy(np.stack([b for _, b in same_layer])[:, None]).requires_grad_()
        layers.append((weights, bias))
    return layers


def logits(layers, x):
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        x = torch.baddbmm(b, x, w).relu()
    return torch.baddbmm(bias, x, weights)[..., 0]


def main():
    args = worker.arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    x_host, y_host = worker.training_rows(args)
    x, y = torch.from_numpy(x_host), torch.from_numpy(y_host)

    def epoch(layers, optimiser):
        start = time.perf_counter()
        order = torch.stack([torch.randperm(len(y)) for _ in range(worker.ENSEMBLE)])
        xs, ys = x[order].split(worker.BATCH, dim=1), y[order].split(worker.BATCH, dim=1)
        for xb, yb in zip(xs, ys):
            optimiser.zero_grad()
            # The sum over models of each model's mean: every model sees its own gradient.
            loss = functional.binary_cross_entropy_with_logits(
                logits(layers, xb), yb, reduction="sum"
            )
            (loss / yb.shape[1]).backward()
            optimiser.step()
        return time.perf_counter() - start

    def flat(layers):
        return [tensor for layer in layers for tensor in layer]

    def trial(kind):
        spare = ensemble(args.seed, x.shape[1])
        return epoch(spare, adam(flat(spare), **kind))

    kind = faster_adam(trial)
    layers = ensemble(args.seed, x.shape[1])
    optimiser = adam(flat(layers), **kind)

    def one_round():
        seconds = epoch(layers, optimiser)
        with torch.no_grad():
            every = logits(layers, x.expand(worker.ENSEMBLE, *x.shape))
            quality = worker.fit_quality(every.numpy(), y_host)
        return {"seconds": seconds, "units": worker.ENSEMBLE, "steps": steps(optimiser), **quality}

    worker.serve(f"torch {torch.__version__}, {next(iter(kind))} Adam", one_round)


if __name__ == "__main__":
    main()
