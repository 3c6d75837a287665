/**
 * Bundles the console: each file of pages/ becomes one script that shares chunks with the others, css/ becomes one sheet.
 *
 *     node build.mjs            # what `make run` does when a source has changed
 *     node build.mjs --watch    # builds again at each change, until Ctrl-C
 *
 * What comes out is in portal/static/portal/dist/: files whose names hold the hash of what they contain, so that browsers
 * keep them forever; .br and .gz beside each, which the domain serves to whoever takes them; source maps; manifest.json,
 * which tells the templates' {% static %} the names (portal/bundle.py).
 *
 * A file of an earlier build stays for KEPT_MS: a domain that runs while this builds still serves what its pages name.
 */

import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import zlib from "node:zlib";

import * as esbuild from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const DIST = path.join(HERE, "..", "static", "portal", "dist");
const KEPT_MS = 60 * 60 * 1000;
const COMPRESSED_FROM_BYTES = 512;
const TARGETS = ["chrome123", "firefox125", "safari17.5"]; // of spring 2024: light-dark(), nesting, popover

const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);

/** css/console.css imports the sheets of all pages without naming them: a page adds its own by adding a file. */
const pageSheets = {
  name: "page sheets",
  setup(build) {
    build.onLoad({ filter: /[/\\]css[/\\]console\.css$/ }, async ({ path: file }) => {
      const folder = path.join(path.dirname(file), "pages");
      const sheets = (await readdir(folder)).filter((name) => name.endsWith(".css")).sort();
      const imports = sheets.map((name) => `@import "./pages/${name}";\n`).join("");
      return { contents: (await readFile(file, "utf8")) + imports, loader: "css", watchDirs: [folder] };
    });
  },
};

/** Compress the output, write the manifest, and remove files long out of use. */
const finishing = {
  name: "finishing",
  setup(build) {
    build.onEnd(async ({ errors, metafile }) => {
      if (errors.length) return;
      const outputs = Object.entries(metafile.outputs).map(([file, about]) => [path.basename(file), about]);
      await Promise.all(outputs.map(([name]) => compress(path.join(DIST, name))));
      const names = {};
      for (const [name, { entryPoint }] of outputs) {
        if (entryPoint) names[path.basename(entryPoint)] = name;
      }
      const manifest = path.join(DIST, "manifest.json");
      await writeFile(`${manifest}.new`, `${JSON.stringify(names, Object.keys(names).sort(), 2)}\n`);
      await rename(`${manifest}.new`, manifest);
      await removeOld(new Set(outputs.map(([name]) => name)));
      if (process.argv.includes("--watch")) console.log(`built ${Object.keys(names).length} entries`);
    });
  },
};

async function compress(file) {
  if (file.endsWith(".map")) return;
  const content = await readFile(file);
  if (content.length < COMPRESSED_FROM_BYTES) return;
  await Promise.all([
    brotli(content, { params: { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: content.length } }).then((data) =>
      writeFile(`${file}.br`, data),
    ),
    gzip(content, { level: 9 }).then((data) => writeFile(`${file}.gz`, data)),
  ]);
}

async function removeOld(current) {
  const now = Date.now();
  for (const name of await readdir(DIST)) {
    const file = path.join(DIST, name);
    const plain = name.replace(/\.(br|gz)$/, "");
    if (name === "manifest.json" || current.has(plain)) continue;
    if (now - (await stat(file)).mtimeMs > KEPT_MS) await rm(file, { force: true });
  }
}

/** @returns {Promise<esbuild.BuildOptions>} */
async function settings() {
  const pages = (await readdir(path.join(HERE, "pages"))).filter((name) => name.endsWith(".js"));
  return {
    absWorkingDir: HERE,
    entryPoints: [...pages.map((name) => `pages/${name}`), "css/console.css"],
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[hash]",
    assetNames: "[name]-[hash]",
    outdir: DIST,
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    sourcemap: true,
    metafile: true,
    target: TARGETS,
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
    plugins: [pageSheets, finishing],
  };
}

await mkdir(DIST, { recursive: true });
if (process.argv.includes("--watch")) {
  const context = await esbuild.context(await settings());
  await context.watch();
} else {
  try {
    await esbuild.build(await settings());
  } catch {
    process.exit(1); // esbuild has printed place and reason
  }
}
