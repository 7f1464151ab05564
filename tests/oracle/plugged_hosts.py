"""The hosts of `plugged` as their papers' equations, split where a plug-in may change the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.dense import Array, At
from tests.oracle.plugged import Host, Look, pirp_term


class DDIM(Host):
    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a, b = self.world.ab(t), self.world.ab(u)
        fresh = self.settings.get("eta", 0.0) * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        return np.sqrt(b) * hat + np.sqrt(1 - b - fresh**2) * look.eps + fresh * draw("step")


class DDNM(Host):
    """Clean data: hat = x0 - A^+ (A x0 - y). Noisy data: DDNM+, component by component."""

    def _split(self, u: int) -> tuple[Array, Array, Array]:
        """lambda, and the weights of fresh and of predicted noise, per component."""
        w, eta = self.world, self.settings["eta"]
        a, s = np.sqrt(w.ab(u)), np.sqrt(1 - w.ab(u))
        kept = np.sqrt(1 - eta**2)
        carried = a * w.sigma / w.safe
        clean = w.measured & (s >= carried)
        lam = np.where(clean, 1, w.safe * s * kept / (a * w.sigma))
        fresh = np.where(clean, np.sqrt(np.maximum(s**2 - carried**2, 0)), s * eta)
        return np.where(w.measured, lam, 0), fresh, np.where(w.measured, 0, s * kept)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w = self.world
        if w.sigma == 0:
            return x0 - w.pinv @ (w.A @ x0 - w.y)
        return x0 - w.V @ (self._split(u)[0] * (w.V.T @ x0 - w.w / w.safe))

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        w, eta = self.world, self.settings["eta"]
        b = w.ab(u)
        if w.sigma == 0:
            noise = np.sqrt(1 - b) * (eta * draw("step") + np.sqrt(1 - eta**2) * look.eps)
        else:
            _, fresh, predicted = self._split(u)
            noise = w.V @ (fresh * (w.V.T @ draw("step")) + predicted * (w.V.T @ look.eps))
        return np.sqrt(b) * hat + noise


class DDNMSimple(Host):
    """One lambda for all components, without the SVD."""

    def _split(self, u: int) -> tuple[float, float]:
        a, s = np.sqrt(self.world.ab(u)), np.sqrt(1 - self.world.ab(u))
        if s >= a * self.world.sigma:
            return 1.0, np.sqrt(s**2 - (a * self.world.sigma) ** 2)
        return s / (a * self.world.sigma), 0.0

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return x0 - self._split(u)[0] * self.world.pinv @ (self.world.A @ x0 - self.world.y)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        eta = self.settings["eta"]
        noise = eta * draw("step") + np.sqrt(1 - eta**2) * look.eps
        return np.sqrt(self.world.ab(u)) * hat + self._split(u)[1] * noise


class DDRM(Host):
    """In the variance-exploding coordinates of the paper; x0 is the one that plug-ins changed."""

    def start(self, first: int, draw: At) -> Array:
        w = self.world
        top = np.sqrt((1 - w.ab(first)) / w.ab(first))
        zv = w.V.T @ draw("start")
        seen = w.measured & (w.s * top > w.sigma)
        spread = np.sqrt(np.maximum(0, top**2 - (w.sigma / w.safe) ** 2))
        return np.sqrt(w.ab(first)) * (w.V @ np.where(seen, w.w / w.safe + spread * zv, top * zv))

    def _sides(self, u: int) -> tuple[float, Array, Array]:
        """The noise of u, and the components of y that are noisier and cleaner than that."""
        w = self.world
        s_u = np.sqrt((1 - w.ab(u)) / w.ab(u))
        return s_u, w.measured & (w.s * s_u < w.sigma), w.measured & (w.s * s_u > w.sigma)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w, kept, weight = self.world, np.sqrt(1 - self.settings["eta"] ** 2), self.settings.get("eta_b", 1.0)
        s_u, noisier, cleaner = self._sides(u)
        p = w.V.T @ x0
        drawn = p + kept * s_u * (w.w - w.s * p) / (w.sigma or 1)
        return w.V @ np.where(cleaner, weight * w.w / w.safe + (1 - weight) * p, np.where(noisier, drawn, p))

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        w, eta, weight = self.world, self.settings["eta"], self.settings.get("eta_b", 1.0)
        s_u, noisier, cleaner = self._sides(u)
        q, z = w.V.T @ look.eps, w.V.T @ draw("step")
        left = np.sqrt(np.maximum(s_u**2 - (weight * w.sigma / w.safe) ** 2, 0)) * z
        free = np.where(noisier, 0, np.sqrt(1 - eta**2) * s_u * q) + eta * s_u * z
        return np.sqrt(w.ab(u)) * (hat + w.V @ np.where(cleaner, left, free))


class DDPG(Host):
    """x~ = x0 - mu [(1 - delta) A^T (A A^T + eta)^-1 r + delta A^T r] + lam R(x0): PIRP, and DDPG for lam = 0.

    decreasing  whether mu falls with the noise; inject: whether noise goes back in, which IDPG leaves out
    """

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w, k = self.world, self.settings
        a, b = w.ab(t), w.ab(u)
        if w.sigma > 0 and u == -1:
            return x0
        delta = b ** k["gamma"] if w.sigma > 0 else 0.0
        mu = (1 - b) / (1 - a) if k.get("decreasing", w.sigma > 0) else 1.0
        r = w.A @ x0 - w.y
        eta = max(1e-4, k["eta_tilde"] * w.sigma**2)
        back = w.A.T @ np.linalg.solve(w.A @ w.A.T + eta * np.eye(len(w.A)), r)
        guided = x0 - mu * ((1 - delta) * back + delta * (w.A.T @ r))
        return guided + k["lam"] * pirp_term(x0, w.shape, k["width"]) if k.get("lam") else guided

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        w, k = self.world, self.settings
        a, b = w.ab(t), w.ab(u)
        trust = b ** k["gamma"] if w.sigma > 0 else 1.0
        if not k.get("inject", True):
            return np.sqrt(b) * hat
        e = (state - np.sqrt(a) * hat) / np.sqrt(1 - a)
        noise = np.sqrt(k["zeta"]) * draw("step") + np.sqrt(1 - k["zeta"]) * trust * e
        return np.sqrt(b) * hat + np.sqrt(1 - b) * noise


class DiffPIR(Host):
    """argmin |A x - y|^2 + rho |x - x0|^2; x0 is held in [-1, 1] before plug-ins see it."""

    def start(self, first: int, draw: At) -> Array:
        w = self.world
        a = w.ab(first)
        if not self.settings["image_like"]:
            return np.sqrt(a) * (w.pinv @ w.y) + np.sqrt(1 - a) * draw("start")
        return np.sqrt(a) * w.y + np.sqrt(max(0.0, 1 - a - a * w.sigma**2)) * draw("start")

    def look(self, state: Any, t: int, draw: At) -> Look:
        look = self.ask(state, t)
        look.x0 = np.clip(look.x0, -1, 1) if self.settings.get("clamp", True) else look.x0
        return look

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w = self.world
        if u == -1:
            return x0
        # Published lambdas belong to sigma as quoted for [0, 1] images, which is trusted down to 0.001.
        rho = self.settings["lam"] * max(0.001, w.sigma / 2) ** 2 * w.ab(t) / (1 - w.ab(t))
        # (A^T A + rho)^-1 A^T = A^T (A A^T + rho)^-1, which stays well conditioned where A has a null space.
        return x0 + w.A.T @ np.linalg.solve(w.A @ w.A.T + rho * np.eye(len(w.A)), w.y - w.A @ x0)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        k, a, b = self.settings, self.world.ab(t), self.world.ab(u)
        e = (state - np.sqrt(a) * hat) / np.sqrt(1 - a)
        fresh = k["eta"] * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        old = np.sqrt(1 - b - fresh**2) * e + fresh * draw("extra")
        return np.sqrt(b) * hat + np.sqrt(1 - k["zeta"]) * old + np.sqrt(k["zeta"] * (1 - b)) * draw("step")


class SITCOM(Host):
    """Adam on the network's input until |A x0 - y| < (sigma + margin) sqrt(m), then the estimate is noised again."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        w, k = self.world, self.settings
        v, m, s = state.copy(), np.zeros_like(state), np.zeros_like(state)
        reached = int((np.abs(w.A).sum(1) > 0).sum())
        for count in range(1, k["inner"] + 1):
            look = self.ask(v, t)
            inside = (np.abs(look.x0) <= 1) | (not k.get("clamp", True))
            look.x0 = np.where(inside, look.x0, np.sign(look.x0))
            r = w.A @ look.x0 - w.y
            if count == k["inner"] or (w.sigma > 0 and r @ r < (w.sigma + k["margin"]) ** 2 * reached):
                return look
            outer = 2 * r if w.sigma > 0 else r / np.linalg.norm(r)
            self.backwards += 1
            g = w.jacobian(look.cov, t).T @ (inside * (w.A.T @ outer)) + 2 * k["lam"] * (v - state)
            m = 0.9 * m + 0.1 * g
            s = 0.999 * s + 0.001 * g**2
            v = v - k["rate"] * (m / (1 - 0.9**count)) / (np.sqrt(s / (1 - 0.999**count)) + 1e-8)
        raise AssertionError("inner is at least 1")

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        b = self.world.ab(u)
        return np.sqrt(b) * hat + np.sqrt(1 - b) * draw("step")


class DPS(Host):
    """Plug-ins enter the posterior mean alone; the guidance is that of the raw estimate, the last step included."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        w = self.world
        look = self.ask(state, t)
        inside = np.abs(look.x0) <= 1
        look.x0 = np.clip(look.x0, -1, 1)
        r = w.A @ look.x0 - w.y
        self.backwards += 1
        look.guidance = w.jacobian(look.cov, t).T @ (inside * (w.A.T @ r)) / np.linalg.norm(r)
        return look

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a, b = self.world.ab(t), self.world.ab(u)
        beta = 1 - a / b
        mean = (beta * np.sqrt(b) * hat + (1 - b) * np.sqrt(1 - beta) * state) / (1 - a)
        return mean + np.sqrt(beta * (1 - b) / (1 - a)) * draw("step") - self.settings["scale"] * look.guidance


class ProjDiff(Host):
    """State (x last asked about, x0, x_o in V-coordinates). Plug-ins change D(x_t, t); x0 then moves towards that."""

    def start(self, first: int, draw: At) -> Any:
        w = self.world
        x = np.sqrt(1 - w.ab(first)) * draw("start")
        x0 = self.ask(x, first).x0
        a = self._levels()
        return x, x0, np.sqrt(a) * (w.V.T @ x0) + np.sqrt(1 - a) * (w.V.T @ draw("extra"))

    def _levels(self) -> Array:
        w = self.world
        return np.where(w.measured, 1 / (1 + (w.sigma / w.safe) ** 2), 1)

    def look(self, state: Any, t: int, draw: At) -> Look:
        w, ab = self.world, self.world.ab(t)
        _, x0, xo = state
        if w.sigma == 0:
            return self.ask(np.sqrt(ab) * x0 + np.sqrt(1 - ab) * draw("step"), t)
        c0, a, z = w.V.T @ x0, self._levels(), w.V.T @ draw("step")
        early = a >= ab
        up = np.sqrt(ab / np.where(early, a, ab)) * xo + np.sqrt(1 - ab / np.where(early, a, ab)) * z
        along = np.sqrt(ab) * c0 + np.sqrt(1 - ab) * (xo - np.sqrt(a) * c0) / np.sqrt(np.where(early, 1, 1 - a))
        return self.ask(w.V @ np.where(early, up, along), t)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w = self.world
        return x0 + w.pinv @ (w.y - w.A @ x0) if w.sigma == 0 else x0

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Any:
        w, a = self.world, self._levels()
        if w.sigma == 0:
            moved = state[1] + self.settings["step"] * (hat - state[1])
            return look.point, moved + w.pinv @ (w.y - w.A @ moved), state[2]
        early = a >= w.ab(t)
        beyond = np.where(w.measured & (u < 0), 1, self.settings.get("early_step", 1.0))
        moved = state[1] + w.V @ (np.where(early, beyond, self.settings["step"]) * (w.V.T @ (hat - state[1])))
        renewed = np.sqrt(a) * (w.V.T @ moved) + np.sqrt(1 - a) * (w.V.T @ draw("observation"))
        xo = np.where(early, renewed, state[2])
        return look.point, moved, np.where(w.measured, np.sqrt(a) * w.w / w.safe, xo)

    def shown(self, state: Any) -> Array:
        return state[0]

    def output(self, state: Any) -> Array:
        return state[1]

    def pack(self, state: Any) -> Array:
        return np.concatenate(np.broadcast_arrays(*state[1:]))

    def unpack(self, rows: Array) -> Any:
        size = len(self.world.V)
        return None, rows[:size], rows[size:]


class ProjDiffSimple(ProjDiff):
    """The form for one singular value, with A^+; x_o is in pixels."""

    def start(self, first: int, draw: At) -> Any:
        x, x0, xo = super().start(first, draw)
        return x, x0, self.world.V @ xo

    def _levels(self) -> Array:
        return np.full_like(self.world.s, 1 / (1 + (self.world.sigma / self.world.s.max()) ** 2))

    def look(self, state: Any, t: int, draw: At) -> Look:
        ab, a = self.world.ab(t), float(self._levels().flat[0])
        _, x0, xo = state
        if ab <= a:
            return self.ask(np.sqrt(ab / a) * xo + np.sqrt(1 - ab / a) * draw("step"), t)
        return self.ask(np.sqrt(ab) * x0 + np.sqrt(1 - ab) * (xo - np.sqrt(a) * x0) / np.sqrt(1 - a), t)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Any:
        w, a = self.world, float(self._levels().flat[0])
        change = hat - state[1]
        if w.ab(t) > a:
            return look.point, state[1] + self.settings["step"] * change, state[2]
        rest = w.pinv @ (w.A @ change) if u < 0 else np.zeros_like(change)  # measured: the estimate's own at the end
        x0 = state[1] + self.settings.get("early_step", 1.0) * (change - rest) + rest
        xo = np.sqrt(a) * x0 + np.sqrt(1 - a) * draw("observation")
        return look.point, x0, xo + w.pinv @ (np.sqrt(a) * w.y - w.A @ xo)
