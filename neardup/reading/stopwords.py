"""English stop words: those that spots begin after, and those that spots pass over.

An antecedent is a word that running prose cannot do without and that headlines, menus and lists of
links mostly lack, so that what follows it is likely to be the article itself (Theobald, Siddharth,
Paepcke 2008): articles, forms of be, do, have and say, and words that point.  Every antecedent is
a stop word.  Both lists are folded as `shingling.canonical` folds a text, and belong
to the format: another list gives other shingles.
"""

from __future__ import annotations

_ANTECEDENTS = """
a an the
am are be been being is was were
did do does doing done
had has have having
that there these this those said says
"""

_OTHERS = """
can cannot could may might must shall should will would
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves
who whom whose which what when where why how
and but or nor so yet if then else than because as while although though unless until since
about above across after against along among around at before behind below beneath beside
between beyond by down during except for from in inside into near of off on onto out outside
over through throughout to toward towards under up upon via with within without
all any both each either every few less many more most much neither no none not only other
others own same several some such
again also always even ever further here just never now often once quite rather still too very
"""

ANTECEDENTS = frozenset(_ANTECEDENTS.split())
STOP_WORDS = ANTECEDENTS | frozenset(_OTHERS.split())
