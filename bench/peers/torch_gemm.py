"""Single-precision matrix product of PyTorch."""

import worker  # first: it keeps stdout for replies
import gemm
import torch


def main():
    torch.set_num_threads(worker.arguments().threads)
    products = []
    for shape in gemm.SHAPES:
        a, b, c = map(torch.from_numpy, gemm.operands(shape))
        products.append((shape, lambda a=a, b=b, c=c: torch.mm(a, b, out=c)))
    worker.serve(f"torch {torch.__version__}", lambda: gemm.best(products))


if __name__ == "__main__":
    main()
