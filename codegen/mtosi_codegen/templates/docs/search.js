const field = document.getElementById("search");
const hits = document.getElementById("hits");
const root = document.currentScript ? document.currentScript.dataset.root : "";
field.hidden = false;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = INDEX.filter(([name]) => words.every((word) => name.toLowerCase().includes(word)));
  found.sort((one, other) => one[0].length - other[0].length);
  hits.replaceChildren(...found.slice(0, 40).map(([name, kind, href]) => {
    const link = document.createElement("a");
    const about = document.createElement("span");
    link.href = root + href;
    about.textContent = " " + kind;
    link.append(name, about);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  hits.hidden = !words.length || !found.length;
});
hits.addEventListener("click", () => { hits.hidden = true; });
