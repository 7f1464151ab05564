// A zip file made in the browser: pictures are compressed already, so they are stored as they are. Their names never leave it.

const TABLE = Uint32Array.from({ length: 256 }, (_, number) => {
  let value = number;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function checksum(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

// numbers: [value, bytes] in the order of the format, little end first
function pack(...numbers) {
  const bytes = [];
  for (const [value, count] of numbers) for (let index = 0; index < count; index++) bytes.push((value / 256 ** index) & 255);
  return Uint8Array.from(bytes);
}

// files: [{ name, blob }]. Names that come twice get a number.
export async function makeZip(files) {
  const [UTF8, OLDEST] = [0x0800, 0x21]; // names in UTF-8; 1 January 1980, since no time is told
  const [parts, directory, taken] = [[], [], new Set()];
  let place = 0;
  for (const { name, blob } of files) {
    const unique = makeUnique(name, taken);
    const title = new TextEncoder().encode(unique);
    const content = new Uint8Array(await blob.arrayBuffer());
    const about = [[UTF8, 2], [0, 2], [0, 2], [OLDEST, 2], [checksum(content), 4], [content.length, 4], [content.length, 4]];
    const header = pack([0x04034b50, 4], [20, 2], ...about, [title.length, 2], [0, 2]);
    parts.push(header, title, content);
    directory.push(pack([0x02014b50, 4], [20, 2], [20, 2], ...about, [title.length, 2], [0, 8], [0, 4], [place, 4]), title);
    place += header.length + title.length + content.length;
  }
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const end = pack([0x06054b50, 4], [0, 4], [files.length, 2], [files.length, 2], [length, 4], [place, 4], [0, 2]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

function makeUnique(name, taken) {
  const [, stem, suffix] = name.replace(/[\\/]/g, "_").match(/^(.*?)(\.[^.]*)?$/);
  let unique = `${stem}${suffix ?? ""}`;
  for (let number = 2; taken.has(unique); number++) unique = `${stem}-${number}${suffix ?? ""}`;
  taken.add(unique);
  return unique;
}
