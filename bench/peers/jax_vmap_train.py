"""JAX: an ensemble of ten networks, each with its own shuffle, batched by `vmap`."""

import worker
import jax_train

if __name__ == "__main__":
    jax_train.main(models=worker.ENSEMBLE)
