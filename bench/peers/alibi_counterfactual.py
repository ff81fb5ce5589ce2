"""Alibi's Counterfactual (Wachter's loss), with its defaults inside the unit cube.

It asks for a score of at least 0.95 for the favourable class. The network is a Keras copy with two
outputs, so that TensorFlow gives the gradients.
"""

import worker  # first: it keeps stdout for replies
import alibi
import numpy as np
import tensorflow as tf

FACTUALS = 4


def network(layers):
    """The network as Keras wants it: softmax over 0 and the logit is the sigmoid."""
    columns = layers[0][0].shape[0]
    *hidden, (weights, bias) = layers
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((columns,)),
            *(tf.keras.layers.Dense(w.shape[1], activation="relu") for w, _ in hidden),
            tf.keras.layers.Dense(2, activation="softmax"),
        ]
    )
    last = (np.concatenate([np.zeros_like(weights), weights], axis=1), np.append(0, bias))
    model.set_weights([values for layer in (*hidden, last) for values in layer])
    return model


def main():
    args = worker.arguments()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    tf.compat.v1.disable_v2_behavior()
    problem = worker.problem(args)
    explainer = alibi.explainers.Counterfactual(
        network(problem.layers),
        shape=(1, problem.x.shape[1]),
        target_class=1,
        feature_range=(0.0, 1.0),
    )

    def explain(factual):
        found = explainer.explain(factual[None]).cf
        return None if found is None else np.asarray(found["X"], np.float32)[0]

    versions = f"alibi {alibi.__version__}, tensorflow {tf.__version__}"
    worker.serve_explainer(versions, problem, explain, FACTUALS)


if __name__ == "__main__":
    main()
