"""PyTorch, eager: T-Rex:I in batches of factuals; those that pass leave their batch.

The base is the authors' (elastic net with squared L2 cost), for all factuals at once.
"""

import time

import worker  # first: it keeps stdout for replies
import torch
from torch_stability import network, read


def base(model, factuals):
    """The nearest points that the network accepts, by FISTA with a search over the trade-off."""
    count = len(factuals)
    trade_off = torch.full((count,), 1e-3)
    low, high = torch.zeros(count), torch.full((count,), torch.inf)
    best, least = factuals.clone(), torch.full((count,), torch.inf)
    for _ in range(worker.BASE_ROUNDS):
        x = ahead = factuals
        success = torch.zeros(count, dtype=torch.bool)
        for number in range(worker.BASE_STEPS):
            ahead = ahead.detach().requires_grad_()
            margin = 1 - 2 * model(ahead) + worker.BASE_MARGIN
            distance = (ahead - factuals).square().sum(dim=1)
            loss = torch.where(margin > 0, trade_off * margin + distance, 0.0).sum()
            (gradient,) = torch.autograd.grad(loss, ahead)
            with torch.no_grad():
                rate = worker.BASE_RATE * (1 - number / worker.BASE_STEPS) ** 0.5
                moved = (ahead - rate * gradient).clamp(0, 1)
                ahead, x = moved + number / (number + 3) * (moved - x), moved
                distance = (x - factuals).square().sum(dim=1)
                accepted = model(x) >= 0.5
                success |= accepted
                better = accepted & (distance < least)
                best[better], least[better] = x[better], distance[better]
        low, high = torch.where(success, low, trade_off), torch.where(success, trade_off, high)
        trade_off = torch.where(high.isfinite(), (low + high) / 2, trade_off * 10)
    return best, least.isfinite()


def climb(model, offsets, points):
    """Unit steps up the stability, in place, until it reaches tau; returns who got there."""
    passed = torch.zeros(len(points), dtype=torch.bool)
    active = torch.arange(len(points))
    for number in range(worker.STEPS + 1):
        values, gradients = read(model, offsets, points[active])
        reached = values >= worker.TAU
        passed[active[reached]] = True
        active, gradients = active[~reached], gradients[~reached]
        if len(active) == 0 or number == worker.STEPS:
            break
        lengths = gradients.norm(dim=1, keepdim=True).clamp_min(1e-12)
        points[active] = (points[active] + worker.STEP * gradients / lengths).clamp(0, 1)
    return passed


def main():
    args = worker.arguments()
    torch.set_num_threads(args.threads)
    problem = worker.problem(args)
    model, offsets = network(problem.layers), torch.from_numpy(problem.offsets)
    factuals = torch.from_numpy(problem.factuals)

    def explain(factuals, batch):
        points, have_base = base(model, factuals)
        parts = points.split(batch)
        passed = torch.cat([climb(model, offsets, part) for part in parts])
        return points, passed & have_base

    def trial(batch):
        start = time.perf_counter()
        explain(factuals[:32], batch)
        return time.perf_counter() - start

    trial(4)
    batch = min((1, 4, 16), key=trial)

    def one_round():
        start = time.perf_counter()
        points, passed = explain(factuals, batch)
        seconds = time.perf_counter() - start
        points = worker.listed(points.numpy(), passed.numpy())
        return {"seconds": seconds, "units": len(points), "points": points}

    worker.serve(f"torch {torch.__version__}, batches of {batch}", one_round)


if __name__ == "__main__":
    main()
