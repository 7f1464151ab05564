// Gives life to the page's own pieces of HTML. Listens on the document, since Gradio draws its parts anew at any time.
(() => {
  "use strict";
  const $ = (selector, from = document) => from.querySelector(selector);

  // --- handing in -----------------------------------------------------------------------------------------------------
  const tell = (text) => {
    const place = $("#told");
    if (place) place.textContent = text;
  };
  const setValue = (id, value) => {
    const field = $(`#${id} textarea, #${id} input`);
    if (!field) return;
    const prototype = field.tagName === "TEXTAREA" ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype;
    Object.getOwnPropertyDescriptor(prototype, "value").set.call(field, value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  let busy = false;
  const take = async (address, body) => {
    if (busy) return;
    busy = true;
    tell("");
    $("#drop")?.classList.add("busy");
    try {
      const answer = await fetch(address, { method: "POST", body, headers: { "content-type": "application/octet-stream" } });
      const found = await answer.json();
      if (found.token) setValue("token", found.token);
      else tell(found.error);
    } catch {
      tell("The picture did not arrive; see that the program is still running, and try again.");
    } finally {
      busy = false;
      $("#drop")?.classList.remove("busy");
    }
  };
  const handIn = (file) => {
    const most = Number($("#drop")?.dataset.most);
    if (most && file.size > most) {
      tell(`The file has ${(file.size / 2 ** 20).toFixed(1)} MB; at most ${most / 2 ** 20} MB are taken here, so make it smaller.`);
      return;
    }
    take("leader/upload", file);
  };
  document.addEventListener("change", (event) => {
    if (event.target.id !== "file" || !event.target.files.length) return;
    handIn(event.target.files[0]);
    event.target.value = "";
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    $("#drop")?.classList.add("over");
  });
  document.addEventListener("dragleave", () => $("#drop")?.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("#drop")?.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) handIn(file);
  });
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])][0];
    if (file) handIn(file);
  });
  document.addEventListener("click", (event) => {
    const sample = event.target.closest?.("[data-sample]");
    if (sample) take(`leader/sample/${sample.dataset.sample}`, "");
    if (event.target.closest?.("[data-clear]")) clear(event.target.closest(".paint"));
  });

  // on a phone the result lies below the form: what was asked for is brought into sight
  document.addEventListener("click", (event) => {
    const place = event.target.closest?.("#start") ? $("#out") : event.target.closest?.("#compare") ? $("#both") : null;
    if (!place) return;
    setTimeout(() => {
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (place.getBoundingClientRect().top > 0.6 * innerHeight) place.scrollIntoView({ behavior: calm ? "auto" : "smooth" });
    }, 400);
  });

  // --- sliders --------------------------------------------------------------------------------------------------------
  document.addEventListener("input", (event) => {
    const range = event.target;
    if (range.type !== "range") return;
    const slider = range.closest(".slider");
    if (slider) slider.style.setProperty("--share", `${range.value}%`);
    const trust = range.closest(".trust");
    if (trust) trust.style.setProperty("--share", range.value / 100);
    const compare = range.closest(".compare");
    if (compare) zoom(compare, range.value / 100);
  });

  // --- the brush ------------------------------------------------------------------------------------------------------
  const brushes = new WeakMap();
  const brushOf = (canvas) => {
    if (!brushes.has(canvas)) {
      const most = 1024 / Math.max(canvas.dataset.width, canvas.dataset.height);
      const scale = Math.min(1, most);
      canvas.width = Math.max(1, Math.round(canvas.dataset.width * scale));
      canvas.height = Math.max(1, Math.round(canvas.dataset.height * scale));
      brushes.set(canvas, { last: null, x: canvas.width / 2, y: canvas.height / 2 });
    }
    return brushes.get(canvas);
  };
  const widthOf = (canvas) => {
    const shown = canvas.getBoundingClientRect().width || canvas.width;
    return (Number($(".brush", canvas.closest(".paint")).value) * canvas.width) / shown;
  };
  const place = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * canvas.width, ((event.clientY - box.top) / box.height) * canvas.height];
  };
  const stroke = (canvas, from, to) => {
    const pen = canvas.getContext("2d");
    pen.lineCap = "round";
    pen.lineJoin = "round";
    pen.lineWidth = widthOf(canvas);
    pen.strokeStyle = "rgb(220, 38, 38)";
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(to[0] + 0.01, to[1]);
    pen.stroke();
  };
  const keep = (canvas) => setValue("painted", canvas.toDataURL("image/png"));
  const clear = (paint) => {
    const canvas = $("canvas", paint);
    brushOf(canvas);
    canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    setValue("painted", "");
  };
  document.addEventListener("pointerdown", (event) => {
    if (event.target.matches?.(".paint canvas")) {
      const brush = brushOf(event.target);
      brush.last = place(event.target, event);
      event.target.setPointerCapture(event.pointerId);
      stroke(event.target, brush.last, brush.last);
    }
    const pane = event.target.closest?.(".pane");
    if (pane) drag = { pane, x: event.clientX, y: event.clientY };
  });
  document.addEventListener("pointermove", (event) => {
    const canvas = event.target;
    if (canvas.matches?.(".paint canvas") && brushOf(canvas).last) {
      const brush = brushOf(canvas);
      const now = place(canvas, event);
      stroke(canvas, brush.last, now);
      brush.last = now;
    }
    if (drag) {
      move(drag.pane.closest(".compare"), event.clientX - drag.x, event.clientY - drag.y);
      drag.x = event.clientX;
      drag.y = event.clientY;
    }
  });
  const lift = (event) => {
    if (event.target.matches?.(".paint canvas") && brushOf(event.target).last) {
      brushOf(event.target).last = null;
      keep(event.target);
    }
    drag = null;
  };
  document.addEventListener("pointerup", lift);
  document.addEventListener("pointercancel", lift);

  // --- two pictures, one zoom -----------------------------------------------------------------------------------------
  let drag = null;
  const views = new WeakMap();
  const viewOf = (compare) => {
    if (!views.has(compare)) views.set(compare, { zoom: 1, x: 0, y: 0 });
    return views.get(compare);
  };
  const show = (compare) => {
    const view = viewOf(compare);
    const pane = $(".pane", compare).getBoundingClientRect();
    view.x = Math.min(0, Math.max(pane.width * (1 - view.zoom), view.x));
    view.y = Math.min(0, Math.max(pane.height * (1 - view.zoom), view.y));
    for (const image of compare.querySelectorAll(".pane img"))
      image.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`;
    $(".zoom", compare).value = Math.round(100 * view.zoom);
  };
  const zoom = (compare, factor, at = null) => {
    const view = viewOf(compare);
    const pane = $(".pane", compare).getBoundingClientRect();
    const [x, y] = at ?? [pane.width / 2, pane.height / 2];
    const next = Math.min(16, Math.max(1, factor));
    view.x = x - ((x - view.x) * next) / view.zoom;
    view.y = y - ((y - view.y) * next) / view.zoom;
    view.zoom = next;
    show(compare);
  };
  const move = (compare, dx, dy) => {
    const view = viewOf(compare);
    view.x += dx;
    view.y += dy;
    show(compare);
  };
  document.addEventListener(
    "wheel",
    (event) => {
      const pane = event.target.closest?.(".pane");
      if (!pane) return;
      event.preventDefault();
      const box = pane.getBoundingClientRect();
      const compare = pane.closest(".compare");
      zoom(compare, viewOf(compare).zoom * Math.exp(-event.deltaY / 400), [event.clientX - box.left, event.clientY - box.top]);
    },
    { passive: false },
  );

  // --- keys -----------------------------------------------------------------------------------------------------------
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  document.addEventListener("focusin", (event) => {
    const group = event.target.matches?.("label > input[type=radio]") && event.target.closest(".wrap");
    if (!group || group.hasAttribute("role")) return;
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-label", $("[data-testid=block-info]", group.parentElement)?.textContent ?? "");
  });
  document.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (arrow && event.target.matches?.("label > input[type=radio]")) {
      // Gradio gives every radio button a name of its own, so arrow keys do not reach the next one by themselves
      const all = [...event.target.closest(".wrap").querySelectorAll("input[type=radio]")];
      const next = all[(all.indexOf(event.target) + arrow[0] + arrow[1] + all.length) % all.length];
      next.focus();
      next.click();
      event.preventDefault();
    }
    if (event.target.matches?.(".pane")) {
      const compare = event.target.closest(".compare");
      if (arrow) move(compare, -40 * arrow[0], -40 * arrow[1]);
      else if (event.key === "+") zoom(compare, viewOf(compare).zoom * 1.25);
      else if (event.key === "-") zoom(compare, viewOf(compare).zoom / 1.25);
      else return;
      event.preventDefault();
    }
    if (event.target.matches?.(".paint canvas")) {
      const canvas = event.target;
      const brush = brushOf(canvas);
      const from = [brush.x, brush.y];
      if (arrow) {
        const step = Math.max(1, widthOf(canvas) / 2);
        brush.x = Math.min(canvas.width, Math.max(0, brush.x + step * arrow[0]));
        brush.y = Math.min(canvas.height, Math.max(0, brush.y + step * arrow[1]));
        canvas.style.setProperty("--x", `${(100 * brush.x) / canvas.width}%`);
        canvas.style.setProperty("--y", `${(100 * brush.y) / canvas.height}%`);
        if (brush.down) stroke(canvas, from, [brush.x, brush.y]);
      } else if (event.key === " ") {
        brush.down = !brush.down;
        if (brush.down) stroke(canvas, from, from);
        keep(canvas);
      } else return;
      if (brush.down) keep(canvas);
      event.preventDefault();
    }
  });
})();
