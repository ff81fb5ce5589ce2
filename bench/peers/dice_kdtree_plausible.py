"""DiCE by the rows that the network accepts (a k-d tree), with its defaults."""

import dice_network

if __name__ == "__main__":
    dice_network.main("kdtree", 40, {})
