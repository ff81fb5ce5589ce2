# %% [markdown]
# # Advice for rejected applicants of a scikit-learn model
#
# A bank has a credit model in scikit-learn: columns are scaled and one-hot encoded, then a
# network decides. This script tells every rejected applicant what to change, in the columns the
# bank knows, and then does what banks do: it trains the model again. How much of the advice is
# still right?

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tyrex

# %% [markdown]
# ## The model
#
# German credit has 1,000 applicants. It comes with the package, and so does a split into rows to
# train on and rows to test with.

# %%
german = tyrex.datasets.load_german()
frame = german.to_pandas()
train, test = frame.iloc[german.train], frame.iloc[german.test]

columns = frame.columns.drop("class")
numbers = [name for name in columns if pd.api.types.is_numeric_dtype(frame[name])]
texts = [name for name in columns if name not in numbers]


def fit(rows, seed):
    """The bank's training, as it is run every month."""
    encoder = ColumnTransformer(
        [
            ("numbers", StandardScaler(), numbers),
            ("texts", OneHotEncoder(handle_unknown="ignore"), texts),
        ]
    )
    network = MLPClassifier(
        (32, 32), alpha=1.0, learning_rate_init=0.005, max_iter=500, random_state=seed
    )
    return make_pipeline(encoder, network).fit(rows[columns], rows["class"])


pipeline = fit(train, seed=0)
rejected = test[pipeline.predict(test[columns]) == "bad"]
print(f"accuracy on test rows: {pipeline.score(test[columns], test['class']):.3f}")
print(f"rejected: {len(rejected)} of {len(test)} test rows")

# %% [markdown]
# ## The explainer
#
# It takes the fitted pipeline as it is. The pipeline becomes a network of the native engine; the
# scaler and the encoder are understood, so that advice speaks of the table's own columns. The
# largest difference between the scores of both, over all rows, is the deviation. The data are the
# rows that the model was trained on.

# %%
explainer = tyrex.Explainer(pipeline, train, label="class", favourable="good")
print(explainer)
print(f"deviation: {explainer.deviation:.1e}")

# %% [markdown]
# No schema was given, so one was inferred from the data. It is a draft: it
# lets people change their age, in both directions.

# %%
print(explainer.schema)

# %% [markdown]
# ## The schema, corrected
#
# Age can only rise, a credit history cannot be changed, and the years of employment have an order.
# Columns that are not named here keep their draft. A schema is a TOML file: keep it beside the
# model, and correct it in an editor from then on.

# %%
fixed = {"action": "fixed"}
schema = explainer.schema.corrected(
    age={"action": "only-up", "range": [18, 99], "unit": "years"},
    duration={"unit": "months"},
    credit_amount={"unit": "DM"},
    residence_since={"action": "only-up", "range": [1, 4]},
    employment={
        "kind": "ordinal",
        "levels": ["unemployed", "<1 year", "1<=X<4 years", "4<=X<7 years", ">=7 years"],
        "action": "only-up",
    },
    credit_history=fixed,
    purpose=fixed,
    personal_status=fixed,
    num_dependents=fixed,
    foreign_worker=fixed,
)
folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
schema.save(place / "credit.toml")

explainer = tyrex.Explainer(pipeline, train, place / "credit.toml", favourable="good")
print(explainer.schema)

# %% [markdown]
# ## Advice
#
# `trex-i` looks for advice with a stability of at least 0.8: the model has to accept the advised
# row and what lies around it. `min-cost` is content with the nearest row that the model accepts.

# %%
advice = explainer.explain(rejected)
nearest = explainer.explain(rejected, method="min-cost")
print(advice)

# %% [markdown]
# As sentences, one row each:

# %%
for explanation in advice[:3]:
    print(explanation)

# %% [markdown]
# A call may restrict the changes beyond the schema: here only the loan may change, and not below
# six months. A row without advice has the reason, and the rule that prevents advice.

# %%
loan_only = explainer.explain(
    rejected.head(10),
    features_to_vary=["duration", "credit_amount"],
    permitted_range={"duration": [6, 60]},
)
print(loan_only.summary)
for explanation in [*loan_only.found[:1], *loan_only.not_found[:2]]:
    print(explanation)

# %% [markdown]
# As a table under the labels of the rows that were given, with only the cells that change. In a
# notebook, `advice` itself and `advice.styled()` mark them.

# %%
table = advice.to_pandas(changes_only=True)
print(table[["checking_status", "duration", "credit_amount", "score", "stability"]].head())

# %% [markdown]
# ## Files
#
# CSV and Parquet hold a row per applicant, as the command line writes them; JSON holds
# everything and can be read again.

# %%
for name in ("advice.csv", "advice.parquet", "advice.json"):
    advice.save(place / name)
    print(f"{name}: {(place / name).stat().st_size} bytes")
again = tyrex.Explanations.from_json(place / "advice.json")
print(f"read again: {again.summary}")

# %% [markdown]
# ## Next month
#
# The bank trains again: five times with another seed, five times on a bootstrap sample of the
# rows as well. The models are the bank's own; tyrex has not seen them. Which share of the advised
# rows does such a model accept?

# %%
other_seeds = [fit(train, seed) for seed in range(1, 6)]
other_rows = [
    fit(train.sample(frac=1, replace=True, random_state=seed), seed) for seed in range(6, 11)
]


def survives(explanations, models):
    """The share of advice that a model accepts, over all models."""
    advised = explanations.found.to_pandas()[columns]
    return np.mean([model.predict(advised) == "good" for model in models])


summary = pd.DataFrame(
    {
        "found": [len(each.found) for each in (nearest, advice)],
        "mean cost": [
            np.mean([one.cost_l1 for one in each.found]).round(2) for each in (nearest, advice)
        ],
        "other seeds": [survives(each, other_seeds).round(3) for each in (nearest, advice)],
        "other rows": [survives(each, other_rows).round(3) for each in (nearest, advice)],
    },
    index=["min-cost", "trex-i"],
)
print(summary)

# %% [markdown]
# Advice that lasts costs more. A higher `tau` buys more of it; `certificates_and_calibration.py`
# shows how to choose one for a promise.

# %%
folder.cleanup()
