# %% [markdown]
# # How sure is the advice, and what does that rest on?
#
# Advice comes with a number, its stability, and a threshold for it, `tau`. This script chooses the
# threshold for a promise instead of by taste, gives advice with it, certifies every piece of it,
# and then checks the promises against models that had no part in any of this.

# %%
import json

import pandas as pd

import tyrex

# %% [markdown]
# ## A model, and what becomes of it
#
# `Explainer.train` trains a network on a labelled table; any PyTorch, Keras or scikit-learn
# network would do as well.

# %%
german = tyrex.datasets.load_german()
explainer = tyrex.Explainer.train(german, hidden=[32, 32], epochs=20, l2=1e-3)
print(explainer)
for part in explainer.performance():
    print(f"{part['part']}: accuracy {part['accuracy']:.3f}, {part['rejected']} rejected")

# %% [markdown]
# Every promise rests on how the next model will differ, so that has to be declared. Here: the
# same rows and settings, other first weights. `tyrex.retrain` makes such models. How far apart are
# their scores?

# %%
change = "reinitialise"
first_ensemble = tyrex.retrain(explainer, 60, change=change, seed=1)
print(first_ensemble)
applicants = german.to_pandas().iloc[german.test]
scores = first_ensemble.score(applicants)
flipped = ((scores >= 0.5) != (explainer.score(applicants) >= 0.5)).mean()
print(f"a retrained model decides otherwise for {flipped:.1%} of the test rows")

# %% [markdown]
# ## A threshold for a promise
#
# The promise: 80 % of the advice is still accepted by the next model, with a confidence of 90 %.
# `tyrex.calibrate` gives advice at every threshold, lets half of the ensemble choose the smallest
# one that was shown to keep the promise, and reports on the other half. The curve is the price
# list: what each threshold costs and keeps.

# %%
calibration = tyrex.calibrate(
    explainer,
    first_ensemble,
    validity=0.8,
    confidence=0.9,
    taus=[0.95, 0.9, 0.8, 0.7, 0.6, 0.5],
    rows=40,
)
print(calibration)
print(calibration.curve)

# %% [markdown]
# ## Advice with that threshold

# %%
advice = explainer.explain(tau=calibration.tau, limit=30)
nearest = explainer.explain(method="min-cost", limit=30)
print(advice.summary)
for explanation in advice[:2]:
    print(explanation)

# %% [markdown]
# ## Certificates
#
# The first ensemble chose the threshold, so it cannot vouch for the advice. A fresh one can:
# another seed, the same kind of change.

# %%
second_ensemble = tyrex.retrain(explainer, 40, change=change, seed=2)
certificates = tyrex.certify(explainer, advice, second_ensemble)
print(certificates[0]["sentence"])

# %% [markdown]
# A certificate has three tiers. Each has a verdict of its own and lists its assumptions as data.
#
# - `theorem`: a changed model scores the point at least so much, with that probability. It rests
#   on how far the scores around the point moved in the retrained models, which is measured.
# - `interval`: every network whose weights differ by at most `delta` accepts the point. Nothing
#   random about it, and nothing but `delta` that it rests on; but a network trained again moves
#   its weights by far more than any `delta` for which this can be shown.
# - `ensemble`: of so many fresh models so many accept the point; an exact bound for the next one.
#
# `certified` means that the promise is about staying valid and all that it rests on is proved,
# declared or measured; `empirical` that something is estimated or unknown; `vacuous` that nothing
# is promised.

# %%
for tier in certificates[0]["tiers"]:
    print(f"{tier['tier']}: {tier['verdict']}")
    for assumption in tier["assumptions"]:
        print(f"    rests on {assumption['assumes']} ({assumption['standing']})")
interval = next(tier for tier in certificates[0]["tiers"] if tier["tier"] == "interval")
print(f"the point stays valid while no weight moves by more than {interval['largest_delta']:.1e}")

# %% [markdown]
# The verdicts of all advice, and of the nearest accepted rows beside it:


# %%
def verdicts(certificates):
    """How many certificates have which verdict, tier by tier."""
    tiers = [tier for certificate in certificates if certificate for tier in certificate["tiers"]]
    table = pd.DataFrame([(tier["tier"], tier["verdict"]) for tier in tiers])
    return pd.crosstab(table[0], table[1]).rename_axis(index="tier", columns="verdict")


print(f"trex-i at tau {calibration.tau:g}")
print(verdicts(certificates))
print("min-cost")
print(verdicts(tyrex.certify(explainer, nearest, second_ensemble)))

# %% [markdown]
# ## The check
#
# Yet other models, which chose nothing and certified nothing. A third ensemble of the declared
# kind should keep the promise. One of another kind, trained on bootstrap samples, was not
# promised anything about: certificates speak only of the change that was declared.

# %%
third_ensemble = tyrex.retrain(explainer, 40, change=change, seed=3)
bootstrapped = tyrex.retrain(explainer, 40, change="bootstrap", seed=3)
for others in (third_ensemble, bootstrapped):
    print(f"{others.change}:")
    print(f"    trex-i {others.validity(advice):.1%}, min-cost {others.validity(nearest):.1%}")

# %% [markdown]
# The same check, certificate by certificate: the ensemble tier promises a probability for each
# point, with a confidence of 95 %. How many points are accepted at least as often as promised?

# %%
advised = advice.found.to_pandas()[explainer.schema.features]
accepted = (third_ensemble.score(advised) >= 0.5).mean(axis=0)
promised = [
    next(tier["probability"] for tier in certificate["tiers"] if tier["tier"] == "ensemble")
    for certificate in certificates
    if certificate
]
kept = sum(share >= promise for share, promise in zip(accepted, promised))
print(f"{kept} of {len(promised)} points are accepted at least as often as promised")

# %% [markdown]
# A certificate is plain data: it carries the model's fingerprint, the seed and a digest, and can
# be stored beside the advice.

# %%
print(f"{len(json.dumps(certificates[0]))} bytes, of the model {certificates[0]['model'][:12]}...")
