"""Keras `fit` on TensorFlow, with its defaults: the authors' way of training.

One long `fit`; a callback holds each epoch until the driver asks for it, so the set-up of a
`fit` call is not timed.
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import worker  # first: it keeps stdout for replies
import keras
import numpy as np
import tensorflow as tf


class OneEpochPerGo(keras.callbacks.Callback):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = tf.constant(x), y

    def on_epoch_begin(self, epoch, logs=None):
        if not worker.wait_for_go():
            raise SystemExit(0)
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        scores = np.clip(self.model(self.x, training=False).numpy()[:, 0], 1e-7, 1 - 1e-7)
        quality = worker.fit_quality(np.log(scores / (1 - scores)), self.y)
        steps = int(self.model.optimizer.iterations.numpy())
        worker.reply(seconds=seconds, units=1, steps=steps, **quality)


def main():
    args = worker.arguments()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    keras.utils.set_random_seed(args.seed)
    x, y = worker.training_rows(args)

    model = keras.Sequential(
        [keras.Input((x.shape[1],))]
        + [keras.layers.Dense(width, activation="relu") for width in worker.HIDDEN]
        + [keras.layers.Dense(1, activation="sigmoid")]
    )
    optimiser = keras.optimizers.Adam(
        worker.LEARNING_RATE, beta_1=worker.BETA1, beta_2=worker.BETA2, epsilon=worker.EPSILON
    )
    model.compile(optimizer=optimiser, loss="binary_crossentropy")

    # One epoch to trace and warm up, then back to the start.
    optimiser.build(model.trainable_variables)
    start = [v.numpy() for v in model.weights + optimiser.variables]
    model.fit(x, y, batch_size=worker.BATCH, epochs=1, verbose=0)
    for variable, value in zip(model.weights + optimiser.variables, start):
        variable.assign(value)

    worker.reply(ready=True, version=f"keras {keras.__version__}, tensorflow {tf.__version__}")
    model.fit(
        x, y, batch_size=worker.BATCH, epochs=1_000_000, verbose=0, callbacks=[OneEpochPerGo(x, y)]
    )


if __name__ == "__main__":
    main()
