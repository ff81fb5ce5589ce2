"""Common parts of the authors' recipes: a Keras model called eagerly, on fresh noise each time."""

import keras
import tensorflow as tf
import worker


def network(layers):
    """The network as a Keras model."""
    columns = layers[0][0].shape[0]
    *hidden, last = [weights.shape[1] for weights, _ in layers]
    model = keras.Sequential(
        [
            keras.layers.Input((columns,)),
            *(keras.layers.Dense(width, activation="relu") for width in hidden),
            keras.layers.Dense(last, activation="sigmoid"),
        ]
    )
    model.set_weights([values for layer in layers for values in layer])
    return model


def relaxed_stability(model, x):
    """Of one point, a 1 x d tensor."""
    offsets = tf.random.normal((worker.SAMPLES, x.shape[1]), stddev=worker.SIGMA)
    scores = model(x + offsets)
    return tf.reduce_mean(scores - tf.abs(model(x) - scores))


def setup(args):
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    tf.random.set_seed(args.seed)
    problem = worker.problem(args)
    return problem, network(problem.layers)


VERSION = f"tensorflow {tf.__version__}, eager"
