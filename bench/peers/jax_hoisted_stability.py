"""JAX with the shortcut that tyrex takes: the offsets' share of the first layer, once."""

import jax_stability

if __name__ == "__main__":
    jax_stability.main(jax_stability.hoisted)
