"""A script of deepinv in which one line was changed: the model is a method of leader, everything else stays.

pip install deepinv && python deepinv_script.py
"""

import deepinv
import torch

import leader
from leader.samples import demo_photograph

with demo_photograph() as path:  # or a picture of yours
    x = deepinv.utils.load_image(path, img_size=96)
noise = deepinv.physics.GaussianNoise(sigma=0.03)
taps = deepinv.physics.functional.blur.gaussian_blur(sigma=(1.5, 1.5))
physics = deepinv.physics.BlurFFT(tuple(x.shape[1:]), filter=taps, noise_model=noise)
y = physics(x)

# model = deepinv.models.ArtifactRemoval(deepinv.models.MedianFilter())
model = leader.interop.deepinv.Reconstructor("ddnm", steps=20)

with torch.no_grad():
    x_hat = model(y, physics)
print(f"PSNR {float(deepinv.metric.PSNR()(x_hat, x)):.2f} dB, of the measurement {float(deepinv.metric.PSNR()(y, x)):.2f} dB")
