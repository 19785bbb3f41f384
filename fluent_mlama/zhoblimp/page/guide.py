"""What the page's help says. The examples are tried out by a test."""

from __future__ import annotations

TEXT = """
#### A paradigm in two minutes

A paradigm is a list of **rows**, counted from 0. The good column makes the good sentence, word by word; the bad column
makes the bad one. Where both columns say the same, the bad sentence keeps the good sentence's word. Where a bad field
repeats the rule of **another** good row, the word moves there from that row. Everything else is drawn afresh.

| write | and get |
|---|---|
| `把` | the word itself |
| `这 那` | one of these words |
| (nothing) | nothing |
| `pos:NN animate:1` | a word of the vocabulary that has these properties |
| `subcat:food/drink` | one of several values |
| `expression:猫` | this very word, with its properties |
| `更 \\| pos:AD` | either of two rules |
| `phrase:Anyone` | a phrase of the project (Phrases) |
| `phrase:That -1:<subcat:food>` | the same, with a condition on its last element |

**Agreement.** Add to a rule:

| keys (short) | meaning |
|---|---|
| `matchedPosition:2 matchedProperties:classifier` (`mPos`, `mPro`) | shares a classifier with the word of row 2 of the same list |
| `mismatchedPosition:0 mismatchedProperties:gender` (`mmPos`, `mmPro`) | has a gender, and it is not that of row 0 |
| `mPos:1 mPro:expression` | the same word once more |
| `goodPosition:1 goodProperties:lemma` (`gPos`, `gPro`; bad column only) | another form of the good sentence's word in row 1 |

Properties are the columns of the vocabulary; `/` between two property names means either of them.

#### Words and phrases

The **vocabulary** has a word a row and a property a column; a cell may hold several values, separated by `/`. Add a word or
a property with the form, or paste rows from a spreadsheet into the text. A word that a
rule spells out need not stand there.

A **phrase** has a name and one or more sequences of elements, of which one is drawn; positions count the elements from 0:

`{"Worker": [[{"type": "Direct", "rule": ["这", "那"]}, {"type": "Matched", "rule": {"pos": "M", "matchedPosition": 2,
"matchedProperties": "classifier"}}, {"type": "Lexical", "rule": {"pos": "NN", "subcat": "person"}}],
[{"type": "Phrase", "rule": {"name": "Name"}}]], "Name": [[{"type": "Lexical", "rule": {"pos": "NR"}}]]}`

`Direct` is one of these words, `Lexical` a word of the vocabulary, `Matched` one that agrees with another element, `Phrase`
another phrase. The rows then say `phrase:Worker`.

#### Three worked examples (project made from the Chinese words)

**Passive: the subject must be able to undergo it**

| row | good | bad |
|---|---|---|
| 0 | `phrase:Name` | `phrase:Name` |
| 1 | `被` | `被` |
| 2 | `pos:NR subcat:person` | `pos:NR subcat:person` |
| 3 | `pos:VV subcat:suffer` | `pos:VV subcat:intran` |
| 4 | `了。` | `了。` |

**Classifier agreement**

| row | good | bad |
|---|---|---|
| 0 | `那里有一` | `那里有一` |
| 1 | `pos:M mPos:2 mPro:classifier` | `pos:M subcat:unlike mmPos:2 mmPro:classifier` |
| 2 | `pos:NN subcat:thing` | `pos:NN subcat:thing` |
| 3 | `。` | `。` |

**Gender agreement of a reflexive**

| row | good | bad |
|---|---|---|
| 0 | `pos:NR subcat:person` | `pos:NR subcat:person` |
| 1 | `pos:VV subcat:inward` | `pos:VV subcat:inward` |
| 2 | `pos:PN number:singular person:3 mPos:0 mPro:gender` | `pos:PN number:singular person:3 mmPos:0 mmPro:gender` |
| 3 | `自己。` | `自己。` |

#### Good to know

- **Strict minimal pair** keeps only pairs of equal length: characters, or words if they are separated by spaces.
- A draw is rejected if a word would stand twice, if the good sentence was made before, or if both sentences are equal. The
  reasons are counted under the preview: they say which rule starves a paradigm.
- The same seed gives the same pairs on any machine, here and with `fluent-mlama zhoblimp generate`.
- Words and phrases that you edit are used at once and stored only when you save them. A file that was changed in another
  tab since you loaded it is never written over unasked. What is deleted is kept in the folder `.deleted`.
- Score these pairs asks the small embedded model; the column *model* marks each pair by L / √n (slln:0.5). A whole set is
  for `fluent-mlama zhoblimp evaluate`.
"""
