# %% [markdown]
# # Pictures and videos
#
# Three pictures, three copies of each, and a video with a clip of it: what is found, and when?

# %%
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import av
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageOps

folder = Path(mkdtemp())


def drawing(seed, seconds=0.0):
    """Return a picture of soft blots, 240 x 320, that move with the seconds."""
    dice = np.random.default_rng(seed)
    y, x = np.mgrid[0:1:240j, 0:1:320j]
    total = np.zeros((240, 320, 3))
    for _ in range(12):
        at, drift, size = dice.uniform(0, 1, 2), dice.uniform(-0.1, 0.1, 2), dice.uniform(0.05, 0.2)
        far = (y - at[0] - drift[0] * seconds) ** 2 + (x - at[1] - drift[1] * seconds) ** 2
        total += np.exp(-far / size**2)[..., None] * dice.uniform(0, 255, 3)
    return Image.fromarray(np.clip(total, 0, 255).astype(np.uint8))


def found(*words):
    """Return the lines of a command of neardup, each as its fields."""
    command = [sys.executable, "-m", "neardup", *words, "--no-cache", "-q"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in lines.splitlines()]


# %%
(folder / "pictures").mkdir()
for seed in range(3):
    one = drawing(seed)
    one.save(folder / f"pictures/{seed}.png")
    one.resize((160, 120)).save(folder / f"pictures/{seed}-small.jpg")
    ImageOps.mirror(one).save(folder / f"pictures/{seed}-mirrored.webp")
    one.crop((8, 6, 312, 234)).save(folder / f"pictures/{seed}-cropped.jpg")
pairs = [
    (Path(a).stem, Path(b).stem, int(bits))
    for a, b, _, bits in (line[:4] for line in found("images", str(folder / "pictures")))
]
print(len(pairs), "pairs,", sum(a[0] != b[0] for a, b, _ in pairs), "of different pictures")

# %% [markdown]
# A clip of ten seconds, from second 12 on, half as large, is found with its times.

# %%
(folder / "films").mkdir()
for name, first, last, side in (("film", 0, 30, 320), ("clip", 12, 22, 160)):
    with av.open(str(folder / f"films/{name}.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = side, side * 3 // 4, "yuv420p"
        for tick in range(first * 10, last * 10):
            scene = drawing(100 + tick // 40, tick % 40 / 10).resize((side, side * 3 // 4))
            file.mux(stream.encode(av.VideoFrame.from_image(scene)))
        file.mux(stream.encode())
((a, b, seconds, at_a, at_b, *_),) = found("videos", str(folder / "films"))
print(Path(a).name, at_a, "is", Path(b).name, at_b)

# %% [markdown]
# ![above: one picture and its copies, and the bits of 256 in which each differs](media.png)

# %%
bits = {name: least for a, b, least in pairs for name in (a, b) if "0" in (a, b)}
bits["0"] = 0
figure, panels = plt.subplots(1, 4, figsize=(9, 2.2), layout="constrained")
for panel, file in zip(panels, sorted((folder / "pictures").glob("0*"))):
    panel.imshow(Image.open(file))
    panel.set(title=f"{file.name}: {bits[file.stem]} bits", xticks=[], yticks=[])
figure.savefig("media.png", dpi=60)
