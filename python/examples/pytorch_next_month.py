# %% [markdown]
# # A PyTorch model is retrained: which promises does it break?
#
# In March a bank rejects people and tells them what to change. In April it trains its model
# again, on more rows. Before the new model goes live, check: is what we told people
# in March still true? `tyrex.audit` answers that, promise by promise, and says what repairs the
# broken ones.

# %%
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tyrex

torch.set_num_threads(1)

# %% [markdown]
# ## March
#
# The bank has 450 rows to train on; April brings the others. scikit-learn makes numbers of the
# columns, PyTorch does the rest.

# %%
german = tyrex.datasets.load_german()
frame = german.to_pandas()
features = frame.columns.drop("class")
march_rows = frame.iloc[german.train[:450]]
april_rows = frame.iloc[german.train]
applicants = frame.iloc[german.test]


def encoder(rows):
    """Numbers for the network: scaled columns, and one column per level."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        sparse_threshold=0,
    ).fit(rows[features])


def train(rows, encoder, seed):
    """A network with one output, the logit of being a good risk."""
    torch.manual_seed(seed)
    x = torch.tensor(encoder.transform(rows[features]), dtype=torch.float32)
    y = torch.tensor((rows["class"] == "good").to_numpy(), dtype=torch.float32)
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 1),
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-3)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(20):
        for batch in torch.randperm(len(x)).split(32):
            optimiser.zero_grad()
            loss(network(x[batch])[:, 0], y[batch]).backward()
            optimiser.step()
    return network.eval()


march_encoder = encoder(march_rows)
march_model = train(march_rows, march_encoder, seed=3)

# %% [markdown]
# The explainer takes both: the module, and the transformer that makes its inputs. `logits=True`
# says that the module ends before the sigmoid. The data set's own schema says what may change:
# the age is fixed, years of employment only go up.

# %%
march = tyrex.Explainer(
    march_model,
    frame,
    german.schema,
    favourable="good",
    logits=True,
    preprocessor=march_encoder,
)
print(march)
print(f"deviation: {march.deviation:.1e}")

# %% [markdown]
# Two kinds of advice for the same people: the nearest row that the model accepts, and advice with
# a stability of at least 0.8. Both are saved. In April nothing else is left of March.

# %%
rejected = applicants[march.score(applicants) < 0.5]
folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
for method in ("min-cost", "trex-i"):
    advice = march.explain(rejected, method=method)
    advice.save(place / f"{method}.json")
    print(advice[:3])
    print()

# %% [markdown]
# ## April
#
# More rows, a new encoder, other first weights: another model.

# %%
april_encoder = encoder(april_rows)
april_model = train(april_rows, april_encoder, seed=4)
april = tyrex.Explainer(
    april_model,
    frame,
    german.schema,
    favourable="good",
    logits=True,
    preprocessor=april_encoder,
)
moved = np.abs(april.score(applicants) - march.score(applicants))
print(
    f"the score of an applicant moved by {moved.mean():.3f} on average, {moved.max():.3f} at most"
)

# %% [markdown]
# ## The audit
#
# For every promise: does April's model accept the row that March's advice describes? The interval
# says where the share lies for all such promises, not only for these.

# %%
audits = {
    method: tyrex.audit(april, tyrex.Explanations.from_json(place / f"{method}.json"))
    for method in ("min-cost", "trex-i")
}
for method, audit in audits.items():
    print(f"{method}:")
    print(audit)
    print()

# %% [markdown]
# A broken promise comes with two repairs. Some people have already done what they were told: the
# repair starts from there. Others have done nothing yet: it starts from the row as it was.

# %%
broken = audits["min-cost"].broken
for promise in broken[:3]:
    print(promise)

first = broken[0]
print("an applicant who has followed the advice:")
print(first.from_promised)
print("an applicant who has changed nothing yet:")
print(first.from_factual)

# %% [markdown]
# A gate for deployment is one line: the new model may go live if it keeps enough.

# %%
for method, audit in audits.items():
    verdict = "may go live" if audit.share_kept >= 0.9 else "breaks too many promises"
    print(f"after {method} advice the new model {verdict}: {audit.share_kept:.1%} kept")

# %%
folder.cleanup()
