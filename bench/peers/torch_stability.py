"""PyTorch, eager: relaxed stability and its gradient, point by point."""

import time

import worker  # first: it keeps stdout for replies
import torch
from torch import nn


def network(layers):
    """The network as a module; its weights ask for no gradients."""
    modules = []
    for weights, bias in layers:
        linear = nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1], nn.Sigmoid(), nn.Flatten(-2)).requires_grad_(False)


def relaxed_stability(model, offsets, x):
    """One value per row of `x`."""
    centre, scores = model(x), model(x[:, None] + offsets)
    return (scores - (centre[:, None] - scores).abs()).mean(dim=1)


def read(model, offsets, x):
    x = x.detach().requires_grad_()
    values = relaxed_stability(model, offsets, x)
    (gradients,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradients


def main():
    args = worker.arguments()
    torch.set_num_threads(args.threads)
    problem = worker.problem(args)
    model, offsets = network(problem.layers), torch.from_numpy(problem.offsets)
    points = torch.from_numpy(problem.factuals[: worker.EVALUATIONS])
    for x in points[:20]:
        read(model, offsets, x[None])

    def one_round():
        start = time.perf_counter()
        readings = [read(model, offsets, x[None]) for x in points]
        seconds = time.perf_counter() - start
        readings = [(value.item(), gradient.numpy()) for value, gradient in readings]
        return {"seconds": seconds, "units": len(points), **worker.summary(readings)}

    worker.serve(f"torch {torch.__version__}", one_round)


if __name__ == "__main__":
    main()
