"""
Text, read once and read as words
=================================

Documents are rows of a sparse matrix with a column for each word. A classifier learns from them in
one pass, sixteen at a time, and is asked about each batch before it learns from it; then one is
fitted to all of them. In the end the weights of a class are read as words.

With two files, for training and for testing, the script takes them in place of made-up text. Their
lines are a label, a tab and a text; or those of svmlight, of features that are counted already::

    python examples/text.py r8-train.txt r8-test.txt
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_svmlight_files
from sklearn.feature_extraction.text import TfidfVectorizer

from fastfw.sklearn import ProjectionFreeClassifier, WeightsDisplay

ROUNDS = 1000
BATCH_SIZE = 16

# %%
# The text is made up: four subjects have ten words of their own, and a document takes two of its
# own and one of any subject among 2,000 words that say nothing, the first the most frequent.

SUBJECTS = {
    "gardens": "rose soil seed spade hedge lawn bloom compost bulb prune",
    "music": "chord cello rhythm tenor melody choir tempo violin scale fugue",
    "sailing": "keel sail harbour tide anchor mast rudder knot buoy wind",
    "baking": "flour yeast oven crust dough butter loaf sugar knead rise",
}
COMMON = np.array([f"word{i}" for i in range(2000)])


def made_up(n, rng):
    """Return n labels and texts."""
    labels = rng.choice(list(SUBJECTS), n)
    often = 1.0 / np.arange(1, COMMON.size + 1)
    often /= often.sum()
    texts = []
    for label in labels:
        own = rng.choice(SUBJECTS[label].split(), 2)
        any_subject = rng.choice(SUBJECTS[rng.choice(list(SUBJECTS))].split(), 1)
        texts.append(" ".join([*own, *any_subject, *rng.choice(COMMON, 25, p=often)]))
    return labels, texts


def read(path):
    """Return the labels and texts of a file."""
    lines = Path(path).read_text("utf-8").splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines if line), strict=True)
    return np.array(labels), texts


files = sys.argv[1:]
if files and "\t" not in Path(files[0]).read_text("utf-8").split("\n", 1)[0]:
    X, labels, X_test, test_labels = load_svmlight_files(files)
    names = np.array([f"column {j}" for j in range(X.shape[1])])
else:
    rng = np.random.default_rng(0)
    train, test = map(read, files) if files else (made_up(n, rng) for n in (1600, 1000))
    (labels, texts), (test_labels, test_texts) = train, test
    words = TfidfVectorizer(sublinear_tf=True)
    X, X_test = words.fit_transform(texts), words.transform(test_texts)
    names = words.get_feature_names_out()
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} in a document")

# %%
# One pass. A round moves towards one vertex of the constraint set: with vertices of one weight a
# class, as on dense data, a hundred rounds know a hundred words of a class at most. On words they
# have many more: a stream learns quickly, and its weights are less sparse.

stream = ProjectionFreeClassifier()
classes, right = np.unique(labels), []
order = np.random.default_rng(1).permutation(len(labels))[: ROUNDS * BATCH_SIZE]
for first in range(0, order.size, BATCH_SIZE):
    rows = order[first : first + BATCH_SIZE]
    if first:
        right.append((stream.predict(X[rows]) == labels[rows]).mean())
    stream.partial_fit(X[rows], labels[rows], classes=classes)
online = stream.score(X_test, test_labels)
print(f"one pass: accuracy {online:.3f}, {np.count_nonzero(stream.coef_)} nonzero weights")

# %%
# A fit to all documents chooses the radius, and how many words a round brings in, by itself, and
# ends when documents that are held out are predicted no better. It needs fewer words.

model = ProjectionFreeClassifier().fit(X, labels)
fitted = model.score(X_test, test_labels)
print(
    f"fit: accuracy {fitted:.3f}, {np.count_nonzero(model.coef_)} nonzero weights, "
    f"radius {model.radius_:g}, vertices of {model.vertex_size_}"
)

# %%
# The most telling words of a class are its largest weights.

for label, weights in zip(model.classes_, model.coef_, strict=True):
    print(f"{label}: {', '.join(names[np.argsort(weights)[::-1][:8]])}")

figure, (left, bars) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
mean = np.cumsum(right) / np.arange(1, len(right) + 1)
left.plot(np.arange(2, len(right) + 2), mean)
left.axhline(fitted, color="gray", linestyle="--", label="fit, on test data")
left.set(xlabel="round", ylabel="accuracy so far, before learning", ylim=(0.0, 1.0))
left.legend()
WeightsDisplay.from_estimator(model, model.classes_[0], names=names, top=12, ax=bars)
plt.show()
