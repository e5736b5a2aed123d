"""The exact schemes, and auto: each range of sizes has its own way to meet.

In: sets, and token counts where they are known.
Out: keys, and what they will cost.
May import: as `schemes`.
"""
