// Files of predictions: chosen, read, named, and sent as a body or as the parts of one.

import { freshKey } from "./api.js";
import { byId, el, fill } from "./elements.js";

const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", json: "application/json" };
const INPUTS = ["model-file", "model-other"];

let chosen = new Map(); // what was read, by the input
let named = []; // what there are fields for

/** Forget all files. */
export function forgetFiles() {
  chosen = new Map();
  for (const id of INPUTS) byId(id).value = "";
}

/** The files that were chosen here, as {name, type, content} or {fault}. */
export const filesOf = (id) => chosen.get(id) ?? [];

/** Read the files of an input, so that what is asked is what was priced; at most so many are kept. */
export async function choose(id) {
  const { files } = byId(id);
  chosen.delete(id);
  const found = await Promise.all([...files].map(read));
  if (byId(id).files === files) chosen.set(id, found); // else others were chosen meanwhile
}

/** Whether one file is expected or several: of those that are too many none is kept. */
export function allowMany(many) {
  const [input] = INPUTS;
  byId(input).multiple = many;
  if (many || filesOf(input).length < 2) return;
  byId(input).value = "";
  chosen.delete(input);
}

async function read(file) {
  const [, name, ending] = /^(.*?)(?:\.([^.]*))?$/s.exec(file.name);
  const type = TYPES[(ending ?? "").toLowerCase()];
  if (!type) return { fault: `The file must end in .csv, .parquet or .json; ${file.name} does not.` };
  if (file.size === 0) return { fault: `The file is empty: ${file.name}.` };
  try {
    return { name: name || "predictions", type, content: new Blob([await file.arrayBuffer()]) };
  } catch {
    return { fault: `The file cannot be read: ${file.name}. Choose it again.` };
  }
}

/** Fields for the name of each candidate and, if wanted, for what is expected of it; they stay while the files do. */
export function nameCandidates(files, guesses) {
  const now = [guesses, ...files];
  if (now.length === named.length && now.every((each, i) => each === named[i])) return;
  named = now;
  const names = files.map(({ name }) => name);
  const apart = names.map((name, i) => (names.indexOf(name) === i ? name : `${name} ${i + 1}`));
  const plain = { autocomplete: "off", spellcheck: "false", "aria-describedby": "model-names-error" };
  fill(byId("model-names"), apart.map((name, i) => el("li", {},
    el("input", { ...plain, class: "named", value: name, maxlength: 80, "aria-label": `Name of candidate ${i + 1}` }),
    guesses && el("input", { ...plain, class: "expected", inputmode: "decimal", placeholder: "expected",
      "aria-label": `Score that you expect of candidate ${i + 1}` }))));
}

/** What was typed into the fields of the candidates: "named" or "expected". */
export const typedOf = (kind) =>
  [...byId("model-names").querySelectorAll(`input.${kind}`)].map((each) => each.value.trim());

/** One body of one file, or of several parts with their names. */
export function bodyOf(names, files) {
  if (names.length === 0) return { file: files[0].content, type: files[0].type };
  const boundary = freshKey();
  const parts = files.flatMap(({ content }, i) =>
    [`--${boundary}\r\nContent-Disposition: form-data; name="${escaped(names[i])}"\r\n\r\n`, content, "\r\n"]);
  return { file: new Blob([...parts, `--${boundary}--\r\n`]), type: `multipart/mixed; boundary=${boundary}` };
}

const escaped = (name) => name.replace(/[%"\p{Cc}]/gu, encodeURIComponent);
