"""DiCE by gradients, with its defaults, one counterfactual for each of a few factuals."""

import dice_network

if __name__ == "__main__":
    dice_network.main("gradient", 4, {})
