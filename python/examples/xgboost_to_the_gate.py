# %% [markdown]
# # A boosted model, from data to the gate
#
# A bank scores applicants with XGBoost. Somebody who is rejected is told what to change, with a
# promise: the model after the next retraining accepts it with a probability of at least 0.9. When
# that model is there, the gate says whether it keeps the promises.

# %%
import warnings

import numpy as np
import xgboost

import tyrex

# XGBoost numbers its classes; tyrex says that it takes 1 for "good".
warnings.filterwarnings("ignore", message="the model's classes are 0 and 1")

german = tyrex.datasets.load_german()
label = german.schema.label
frame = german.to_pandas()
texts = frame.drop(columns=label).select_dtypes(exclude="number").columns
frame = frame.astype(dict.fromkeys(texts, "category"))
train, applicants = frame.iloc[german.train], frame.iloc[german.test]
x, good = train.drop(columns=label), (train[label] == "good").astype(int)

model = xgboost.XGBClassifier(
    n_estimators=60,
    max_depth=3,
    subsample=0.8,
    enable_categorical=True,
    random_state=0,
    n_jobs=1,
).fit(x, good)

# %% [markdown]
# The schema of the data set says what may change: the age is fixed, years of employment only go up.

# %%
explainer = tyrex.Explainer(model, train, german.schema, favourable="good")
print(explainer)

# %% [markdown]
# ## Advice with a promise
#
# The bank retrains on a bootstrap of its rows, so the models of the promise are trained like that.
# Some of them choose the advice, the others certify it.

# %%
rejected = applicants[explainer.score(applicants) < 0.5][:6]
refit = tyrex.refits.bootstrap(model, x, good)
advice = explainer.explain(rejected, promise=0.9, refit=refit, seed=1)
print(advice)

# %% [markdown]
# ## The gate
#
# The next model is trained on another bootstrap. It may go live if it keeps enough promises.

# %%
rows = np.random.default_rng(7).integers(0, len(x), len(x))
following = tyrex.Explainer(refit(77, rows), train, german.schema, favourable="good")
audit = tyrex.audit(following, advice)
print(audit)
verdict = "may go live" if audit.share_kept >= 0.8 else "breaks too many promises"
print(f"the next model {verdict}: {audit.share_kept:.1%} kept")
