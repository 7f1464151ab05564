"""The hosts of `plugged` as their papers' equations, split where a plug-in may change the estimate."""

from typing import Any

import numpy as np

from tests.oracle.dense import Array, At
from tests.oracle.plugged import Host, Look, pirp_term


class DDIM(Host):
    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a, b = self.world.ab(t), self.world.ab(u)
        fresh = self.settings.get("eta", 0.0) * np.sqrt((1 - b) / (1 - a)) * np.sqrt(1 - a / b)
        return np.sqrt(b) * hat + np.sqrt(max(0.0, 1 - b - fresh**2)) * look.eps + fresh * draw("step")


class Posterior(DDIM):
    """DDIM with E[x0 | x_t, y] and the noise that goes with it."""

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return self.expected(x0)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a = self.world.ab(t)
        look.eps = (state - np.sqrt(a) * hat) / np.sqrt(1 - a)
        return super().advance(state, look, hat, t, u, draw)


class PiGDM(DDIM):
    """g = r^2 J^T A^T (r^2 A A^T + sigma^2)^-1 (y - A x0): DDIM's step from x0 + sqrt(abar) g, or with the score of y."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        w, look = self.world, self.ask(state, t)
        missing = w.y - w.A @ look.x0
        look.guidance = w.jacobian(look.cov, t).T @ self.back(missing, w.sigma**2 / self._left(t), euclid=True)
        self.backwards += 1
        return look

    def _left(self, t: int) -> float:
        v, a = self.settings["variance"], self.world.ab(t)
        return float(v * (1 - a) / (1 - a + v * a))

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        a = self.world.ab(t)
        if self.settings["weights"] == "adaptive":
            return x0 + np.sqrt(a) * look.guidance
        assert look.guidance is not None
        score = look.guidance / self._left(t)
        look.eps = look.eps - np.sqrt(1 - a) * score
        return x0 + (1 - a) / np.sqrt(a) * score


class DDNM(Host):
    """Clean data: hat = x0 - A^+ (A x0 - y). Noisy data: DDNM+, component by component. Travels from the raw estimate."""

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
            return x0 - self.back(w.A @ x0 - w.y, 0)
        x0 = self.expected(x0, taken=True)
        return x0 - w.V @ (self._split(u)[0] * (w.V.T @ x0 - w.w / w.safe))

    def travel(self, state: Any, look: Look, now: int, up: int, draw: At) -> Array:
        a = self.world.ab(up)
        return np.sqrt(a) * look.x0 + np.sqrt(1 - a) * draw("travel")

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
        x0 = self.expected(x0)
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
        p = w.V.T @ self.expected(x0, taken=True)
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

    decreasing  whether mu falls with the noise, "least": that of least squares alone; inject: whether noise goes back in,
                which IDPG leaves out; least: the factor of A^T r; blend: whether it is used at all
    """

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w, k = self.world, self.settings
        a, b = w.ab(t), w.ab(u)
        if w.sigma > 0 and u == -1:
            return x0
        delta = b ** k["gamma"] if w.sigma > 0 and k.get("blend", True) else 0.0
        falling = k.get("decreasing", w.sigma > 0)
        mu, nu = ((1 - b) / (1 - a) if which else 1.0 for which in (falling is True, falling))
        r = w.A @ x0 - w.y
        back = self.back(r, max(k.get("eta_floor", 1e-4), k["eta_tilde"] * w.sigma**2))
        guided = x0 - mu * (1 - delta) * back - nu * delta * k.get("least", 1.0) * (w.A.T @ r)
        term = (k.get("width", 1.0), k.get("argument", "curvature"))
        return guided + k["lam"] * pirp_term(x0, w.shape, *term) if k.get("lam") else guided

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
        sigma = max(0.002, w.sigma) / (2 if self.settings.get("published_units", True) else 1)
        # (A^T A + rho)^-1 A^T = A^T (A A^T + rho)^-1, which stays well conditioned where A has a null space.
        return x0 + self.back(w.y - w.A @ x0, self.settings["lam"] * sigma**2 * w.ab(t) / (1 - w.ab(t)))

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        k, a, b = self.settings, self.world.ab(t), self.world.ab(u)
        if u < 0 and k.get("return_noisy"):
            return state
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

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w, x0 = self.world, self.expected(x0) if self.world.sigma > 0 else x0
        known = np.abs(w.A).sum(0) > 0  # of a mask
        return np.clip(np.where(known, w.y, x0), -1, 1) if self.settings.get("overwrite") else x0

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        b = self.world.ab(u)
        return np.sqrt(b) * hat + np.sqrt(1 - b) * draw("step")


class Ancestral(Host):
    """DDPM's step between any two times; RePaint, which then takes the measured part of x_u from y at the noise of u."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        look = self.ask(state, t)
        look.x0 = np.clip(look.x0, -1, 1) if self.settings.get("clamp", True) else look.x0
        return look

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return self.expected(x0, taken=True)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        return self.replaced(self.ancestral(state, look, hat, t, u, draw), t, u, draw)

    def ancestral(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        a, b = self.world.ab(t), self.world.ab(u)
        beta = 1 - a / b
        spread: Array = beta * (1 - b) / (1 - a)
        if self.settings.get("variance") == "predicted" and u >= 0:
            spread = spread + beta**2 * b / (1 - a) ** 2 * np.diag(look.cov)
        mean = (beta * np.sqrt(b) * hat + (1 - b) * np.sqrt(1 - beta) * state) / (1 - a)
        return mean + np.sqrt(spread) * draw("step")

    def replaced(self, x: Array, t: int, u: int, draw: At) -> Array:
        w, b = self.world, self.world.ab(u)
        known = np.sqrt(b) * w.y + np.sqrt(1 - b) * w.A @ draw("observation")
        return x + self.back(known - w.A @ x, self.settings["damping"] * w.sigma**2 / (1 - w.ab(t)), euclid=True)


class DPS(Ancestral):
    """Plug-ins enter the posterior mean alone; the guidance is that of the raw estimate, the last step included."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        w, look = self.world, self.ask(state, t)
        inside = (np.abs(look.x0) <= 1) | (not self.settings.get("clamp", True))
        look.x0 = np.where(inside, look.x0, np.sign(look.x0))
        r = w.A @ look.x0 - w.y
        self.backwards += 1
        size = np.linalg.norm(r) if self.settings.get("guidance") != "annealed" else w.sigma**2 + (1 - w.ab(t)) / w.ab(t)
        look.guidance = w.jacobian(look.cov, t).T @ (inside * (w.A.T @ r)) / size
        return look

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return x0

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        if self.settings.get("guidance") == "annealed":  # the score of the likelihood, taken as DDPM's step takes that of x0
            a = self.world.ab(t)
            hat, moved = hat - self.settings["scale"] * (1 - a) / np.sqrt(a) * look.guidance, 0.0
        else:
            moved = self.settings["scale"] * look.guidance
        return self.ancestral(state, look, hat, t, u, draw) - moved


class MCG(DPS):
    """DPS, or in a metric DDPM's step towards E[x0 | x_t, y]; then what is measured is replaced."""

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return self.expected(x0, taken=True)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        step = super().advance if self.ucdc is None else self.ancestral
        return self.replaced(step(state, look, hat, t, u, draw), t, u, draw)


class DAPS(Host):
    """The flow to a clean image, Langevin steps on the data, and noise of the next time."""

    def look(self, state: Any, t: int, draw: At) -> Look:
        look = self.flow(state, t, self.settings["flow"])
        look.guidance = np.stack([draw(f"inner-{k}") for k in range(self.settings["inner"])])  # the draws of its chain
        return look

    def _takes_data(self, t: int) -> bool:
        a = self.world.ab(t)
        return bool((1 - a) / a >= (self.settings["end"] * self.world.sigma) ** 2)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        w, k = self.world, self.settings
        if u < 0 or not self._takes_data(t):
            return x0
        tau2, s2, x = k["tau"] ** 2, (1 - w.ab(t)) / w.ab(t), self.expected(x0)
        longest = 1 / (np.linalg.norm(w.A, 2) ** 2 / tau2 + 1 / s2)
        length = min(k["rate"] * (k["fall"] + (1 - k["fall"]) * t / (len(w.abar) - 2)), longest)
        assert look.guidance is not None
        for z in look.guidance:
            x = x - length * (w.A.T @ (w.A @ x - w.y) / tau2 + (x - x0) / s2) + np.sqrt(2 * length) * z
        return x

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        b = self.world.ab(u)
        return np.sqrt(b) * hat + np.sqrt(1 - b) * (draw("step") if self._takes_data(t) else look.eps)


class DCDP(Host):
    """Purification by the flow, then gradient descent with momentum on |A x - y|^2 + weight |x - x0|^2."""

    def start(self, first: int, draw: At) -> Array:
        a = self.world.ab(first)
        return np.sqrt(a) * self._fit(np.zeros(len(self.world.V)), first) + np.sqrt(1 - a) * draw("start")

    def look(self, state: Any, t: int, draw: At) -> Look:
        return self.flow(state, t, self.settings["flow"])

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return x0 if u < 0 else self._fit(x0, t) if self.ucdc is None else self.expected(x0)

    def _fit(self, x0: Array, t: int) -> Array:
        w, k = self.world, self.settings
        weight = k["lam"] * w.sigma**2 * w.ab(t) / (1 - w.ab(t))
        x, speed = x0, np.zeros_like(x0)
        for _ in range(k["inner"]):
            slope = w.A.T @ (w.A @ x - w.y) + weight * (x - x0)
            speed = 0.9 * speed + k["rate"] / (np.linalg.norm(w.A, 2) ** 2 + weight) * slope
            x = x - speed
        return x

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Array:
        b = self.world.ab(u)
        return np.sqrt(b) * hat + np.sqrt(1 - b) * draw("step")


class REDDiff(Host):
    """State (x last asked about, mu, Adam's two means and its count); losses are means over pixels and measured entries."""

    def start(self, first: int, draw: At) -> Any:
        w, a = self.world, self.world.ab(first)
        mu = self.back(w.y, w.sigma**2)
        return np.sqrt(a) * mu + np.sqrt(1 - a) * draw("start"), mu, 0 * mu, 0 * mu, 0

    def look(self, state: Any, t: int, draw: At) -> Look:
        a = self.world.ab(t)
        return self.ask(np.sqrt(a) * state[1] + np.sqrt(1 - a) * draw("step"), t)

    def correct(self, state: Any, look: Look, x0: Array, t: int, u: int) -> Array:
        return self.expected(x0)

    def advance(self, state: Any, look: Look, hat: Array, t: int, u: int, draw: At) -> Any:
        w, k, a = self.world, self.settings, self.world.ab(t)
        _, mu, first, second, count = state
        entries = int((np.abs(w.A).sum(1) > 0).sum())
        weight = k["lam"] * ((1 - a) / a) ** (0.5 * (k["power"] - 1))
        gradient = weight * (mu - hat) / len(mu) + w.A.T @ (w.A @ mu - w.y) / entries
        first, second, count = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2, count + 1
        step = (first / (1 - 0.9**count)) / (np.sqrt(second / (1 - 0.99**count)) + 1e-8)
        return look.point, mu - k["rate"] * step, first, second, count

    def shown(self, state: Any) -> Array:
        return state[0]

    def output(self, state: Any) -> Array:
        return state[1]


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
        return x0 + self.back(w.y - w.A @ x0, 0) if w.sigma == 0 else self.expected(x0, taken=True)

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
